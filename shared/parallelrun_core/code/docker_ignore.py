"""Patterns of `.dockerignore`, as Docker reads them.

A path is matched name by name, each in time that grows with its length: patterns that a library would turn into one
regular expression for the whole path could keep it busy for ever.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from parallelrun_core.errors import InvalidInput

IGNORE_FILE: Final = ".dockerignore"
POINTER: Final = "/environment/build/path"
_PIECES: Final = re.compile(r"\*+|\?|\\.|\[[^\]]+\]|.", re.DOTALL)

_Name = re.Pattern[str] | None
"""What one name in a path must be; None: any number of folders."""


class DockerIgnore:
    """The last line that fits a path, or a folder above it, decides. The Dockerfile is always taken.

    Args:
        lines: of the file.
        dockerfile: the path of the Dockerfile.

    Raises:
        InvalidInput: a line is no pattern.
    """

    def __init__(self, lines: Iterable[str], dockerfile: str) -> None:
        self._dockerfile = dockerfile
        self._rules = [
            (_patterns(line.strip().removeprefix("!").strip(), number), not line.strip().startswith("!"))
            for number, line in enumerate(lines, 1)
            if line.strip() and not line.startswith("#")
        ]
        self._has_exceptions = any(not leaves_out for _, leaves_out in self._rules)

    def match_file(self, file: str) -> bool:
        """Return whether this is left out; a folder, with a `/` at its end, only if nothing in it may be taken."""
        if file.endswith("/") and (self._has_exceptions or self._dockerfile.startswith(file)):
            return False
        path = file.rstrip("/")
        if path == self._dockerfile:
            return False
        names = path.split("/")
        is_left_out = False
        for patterns, leaves_out in self._rules:
            if leaves_out is not is_left_out and any(_fits(pattern, names) for pattern in patterns):
                is_left_out = leaves_out
        return is_left_out


def _fits(pattern: Sequence[_Name], names: Sequence[str]) -> bool:
    """Return whether a path, or a folder above it, is what a pattern says."""
    ends = {0}
    """After how many names what was looked at of the pattern may end."""
    for number, name in enumerate(pattern, 1):
        if not ends:
            return False
        if name is None:
            # At its end, a pattern means what is in a folder, not the folder.
            ends = set(range(min(ends) + (number == len(pattern)), len(names) + 1))
        else:
            ends = {end + 1 for end in ends if end < len(names) and name.fullmatch(names[end])}
    return bool(ends - {0})


def _patterns(line: str, number: int) -> list[list[_Name]]:
    """The patterns of a line, of which one must fit."""
    patterns: list[list[_Name]] = [[]]
    for part in line.split("/"):
        if part in ("", "."):
            continue
        ways = _ways(part, number)
        patterns = [[*pattern, *way] for pattern in patterns for way in ways]
    return patterns


def _ways(part: str, number: int) -> list[list[_Name]]:
    """Return what a part of a line may mean: `**` beside other characters stays in the name, or leads into folders."""
    if not part.strip("*") and len(part) > 1:
        return [[None]]
    before, deep, after = part.partition("**")
    if not deep or not after:
        return [[_name(f"{before}*" if deep else part, number)]]
    if "**" in after:
        raise InvalidInput.at(POINTER, f"line {number} of {IGNORE_FILE} has `**` twice in one name", "write two lines")
    return [[_name(f"{before}*{after}", number)], [_name(f"{before}*", number), None, _name(f"*{after}", number)]]


def _name(text: str, number: int) -> re.Pattern[str]:
    """Return what one name must be. Between two `*`, the first place where the rest fits will do: nothing is tried
    twice."""
    parts = [""]
    for piece in _PIECES.findall(text):
        if not piece.strip("*"):
            parts.append("")
        else:
            parts[-1] += _expression(piece)
    first, *between = parts
    last = f".*{between.pop()}" if between else ""
    try:
        return re.compile(first + "".join(f"(?>.*?{each})" for each in between) + last, re.DOTALL)
    except re.error as error:
        raise InvalidInput.at(POINTER, f"line {number} of {IGNORE_FILE} is no pattern") from error


def _expression(piece: str) -> str:
    if piece == "?":
        return "."
    if piece.startswith("[") and len(piece) > 1:
        inside = piece[1:-1].replace("\\", "\\\\").replace("[", "\\[")
        return f"[{inside}]"
    return re.escape(piece[1:] if piece.startswith("\\") and len(piece) > 1 else piece)
