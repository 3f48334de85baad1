"""The version of a file in few bytes: there may be a billion of them, and hashes can't be compressed."""

from __future__ import annotations

import re
from typing import Final

from parallelrun_core.storage.interface import Version
from parallelrun_core.wire.message import FileVersion

_HEX: Final = re.compile(r'"[0-9a-f]+"')


def packed(version: Version) -> FileVersion:
    """A version as messages have it."""
    size_bytes, modified, tag = version
    if not tag:
        return FileVersion(size_bytes, b"", modified)
    if _HEX.fullmatch(tag) and not len(tag) % 2:
        return FileVersion(size_bytes, b"#" + bytes.fromhex(tag[1:-1]))
    return FileVersion(size_bytes, b"=" + tag.encode())


def unpacked(version: FileVersion) -> Version:
    """The inverse of `packed`, but for the time of a version that has a tag."""
    kind, tag = version.tag[:1], version.tag[1:]
    text = f'"{tag.hex()}"' if kind == b"#" else tag.decode()
    return Version(version.size_bytes, version.modified, text)
