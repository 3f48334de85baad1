"""The packages of a locked requirements file."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final, NamedTuple

_LINE: Final = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;]+)([^\n]*)$", re.MULTILINE)
_HASH: Final = re.compile(r"--hash=sha256:([0-9a-f]{64})")


class Package(NamedTuple):
    """One locked version."""

    name: str
    version: str
    sha256: frozenset[str]


def locked(file: Path) -> set[Package]:
    """The packages that a file names."""
    text = file.read_text(encoding="utf-8").replace("\\\n", " ")
    return {Package(name, version, frozenset(_HASH.findall(rest))) for name, version, rest in _LINE.findall(text)}
