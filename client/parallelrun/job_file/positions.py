"""Positions of fields in a job file, to say where a problem is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

from parallelrun.errors import Problem
from parallelrun_core.azure.findings import Note
from parallelrun_core.spec.problems import line_of, lines_of, rewritten_numbers

_IS_ODD: Final = re.compile(rb"(?<![\w.])[-+]?0[0-9_]|environment_variables")
"""What a text has in it if one of its numbers may need a note: finding the numbers takes longer."""
_LEADING_ZERO: Final = re.compile(r"[-+]?0[0-9_]+")
_VARIABLE: Final = re.compile(r"(?:/.*)?/environment_variables/[^/]*")


class Source:
    """A job file, and what the command line has changed in it.

    Args:
        file: its path as the user gave it.
        document: its content, with all changes.
        assigned: the paths of the changed fields, such as `inputs.images.path`.
    """

    def __init__(self, file: Path, text: bytes, document: object, assigned: list[str]) -> None:
        self._file = file
        self._text = text
        self._document = document
        self._assigned = ["/" + path.replace(".", "/") for path in assigned]

    def located(self, problem: Problem) -> Problem:
        """Return a problem with its place, at a field that the user has written: a short form has no parts."""
        pointer = self._written(problem.pointer)
        within = problem.pointer.removeprefix(pointer)
        if within and pointer.endswith("/component"):  # the name of a file, which has parts
            problem = replace(problem, message=f"{within}: {problem.message}")
        if any(f"{pointer}/".startswith(f"{path}/") for path in self._assigned):
            return replace(problem, pointer=pointer, place="--set")
        line = line_of(pointer, lines_of(self._text))  # a missing field is reported where its parent is
        place = f"{self._file}:{line}" if line else str(self._file)
        return replace(problem, pointer=pointer, place=place)

    def notes(self) -> Iterator[Note]:
        """The notes on numbers that are read as another text than the one that is written."""
        if not _IS_ODD.search(self._text):
            return
        for pointer, (text, value) in rewritten_numbers(self._text).items():
            if any(f"{pointer}/".startswith(f"{path}/") for path in self._assigned):
                continue
            if _VARIABLE.fullmatch(pointer):
                message = f"{text} is a number, and the variable has it as {str(value)!r}; quote it to keep it as it is"
                yield Note(pointer, message)
            elif _LEADING_ZERO.fullmatch(text):
                yield Note(
                    pointer,
                    f"{text} is read as the decimal number {value:,}; write it without 0 in front, or quote a text",
                )

    def _written(self, pointer: str) -> str:
        part, walked = self._document, ""
        for name in pointer.split("/")[1:]:
            match part:
                case dict() if name in part:
                    part = part[name]
                case list() if name.isdecimal() and int(name) < len(part):
                    part = part[int(name)]
                case str() | int() | float():
                    return walked
                case _:
                    return pointer
            walked += f"/{name}"
        return pointer
