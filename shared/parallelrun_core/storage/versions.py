"""The version of a file in few bytes: there may be a billion of them, and hashes can't be compressed."""

from __future__ import annotations

import re
from typing import Final

from parallelrun_core.message import FileVersion
from parallelrun_core.storage.interface import Version

_HASH: Final = re.compile(r'"([0-9a-f]{2})+"')


def packed(version: Version) -> FileVersion:
    """A version as messages have it."""
    if not version.tag:
        return FileVersion(version.size_bytes, b"", version.modified)
    if _HASH.fullmatch(version.tag):
        return FileVersion(version.size_bytes, b"#" + bytes.fromhex(version.tag[1:-1]))
    return FileVersion(version.size_bytes, b"=" + version.tag.encode())


def unpacked(version: FileVersion) -> Version:
    """The inverse of `packed`, but for the time of a version that has a tag."""
    kind, tag = version.tag[:1], version.tag[1:]
    text = f'"{tag.hex()}"' if kind == b"#" else tag.decode()
    return Version(version.size_bytes, version.modified, text)
