"""Pictures that every browser decodes and that can hold no script, told by how their files begin."""

from __future__ import annotations

import os
import re
from typing import Final

BYTES: Final = "application/octet-stream"
_KINDS: Final = {
    "image/png": re.compile(rb"\x89PNG\r\n\x1a\n"),
    "image/jpeg": re.compile(rb"\xff\xd8\xff"),
    "image/gif": re.compile(rb"GIF8[79]a"),
    "image/webp": re.compile(rb"RIFF....WEBP", re.DOTALL),
    "image/bmp": re.compile(rb"BM.{4}\0{4}", re.DOTALL),
}
_LONGEST: Final = 12


def image_type_of(fd: int) -> str:
    """Return the media type of a picture in an open file, whatever its name; that of bytes for all else."""
    head = os.pread(fd, _LONGEST, 0)
    return next((media_type for media_type, pattern in _KINDS.items() if pattern.match(head)), BYTES)
