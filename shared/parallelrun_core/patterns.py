"""Glob patterns, as inputs are given by them."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Final

_WILDCARD: Final = re.compile(r"[*?\[]")


def has_wildcard(path: str) -> bool:
    return _WILDCARD.search(path) is not None


def split_pattern(path: str) -> tuple[str, list[str]]:
    """The folder before the first name with a wildcard, and the names from there on; without one, the path and none."""
    names = PurePosixPath(path).parts
    first = next((index for index, name in enumerate(names) if has_wildcard(name)), len(names))
    return str(PurePosixPath(*names[:first])), list(names[first:])
