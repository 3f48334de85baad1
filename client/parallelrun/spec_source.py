"""Where the fields of a job file are, to say where a problem is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import yaml

from parallelrun.errors import Problem
from parallelrun_core.spec.bounded_yaml import BoundedLoader


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
        """The same problem with its place, at a field that the user has written: a short form has no parts."""
        pointer = self._written(problem.pointer)
        if any(f"{pointer}/".startswith(f"{path}/") for path in self._assigned):
            return replace(problem, pointer=pointer, place="--set")
        lines, written = _lines(self._text), pointer
        while written and written not in lines:  # a missing field is reported where its parent is
            written = written.rpartition("/")[0]
        place = f"{self._file}:{lines[written]}" if written else str(self._file)
        return replace(problem, pointer=pointer, place=place)

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


def _lines(text: bytes) -> dict[str, int]:
    """The line of each field, by its pointer."""
    root = yaml.compose(text, Loader=BoundedLoader)
    return dict(_lines_below(root, "", set())) if root else {}


def _lines_below(node: yaml.Node, pointer: str, seen: set[int]) -> Iterator[tuple[str, int]]:
    if id(node) in seen:  # aliases could be followed without end
        return
    seen.add(id(node))
    parts: list[tuple[object, yaml.Node, yaml.Node]] = []
    if isinstance(node, yaml.MappingNode):
        parts = [(key.value, key, value) for key, value in node.value]
    elif isinstance(node, yaml.SequenceNode):
        parts = [(number, value, value) for number, value in enumerate(node.value)]
    for name, head, value in parts:
        yield f"{pointer}/{name}", head.start_mark.line + 1
        yield from _lines_below(value, f"{pointer}/{name}", seen)
