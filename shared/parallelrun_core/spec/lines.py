"""The lines of the fields of a YAML or JSON document, to say where a problem is."""

from __future__ import annotations

from collections.abc import Iterator

import yaml

from parallelrun_core.untrusted.bounded_yaml import BoundedLoader


def lines_of(text: str | bytes) -> dict[str, int]:
    """The line of each field, by its pointer, in a document that can be read."""
    root = yaml.compose(text, Loader=BoundedLoader)
    return dict(_lines_below(root, "", set())) if root else {}


def line_of(pointer: str, lines: dict[str, int]) -> int | None:
    """The line of a field; that of its nearest parent if it is missing. None if the document has none of these."""
    while pointer and pointer not in lines:
        pointer = pointer.rpartition("/")[0]
    return lines.get(pointer)


def _lines_below(node: yaml.Node, pointer: str, visited: set[int]) -> Iterator[tuple[str, int]]:
    if id(node) in visited:  # aliases could be followed without end
        return
    visited.add(id(node))
    parts: list[tuple[object, yaml.Node, yaml.Node]] = []
    if isinstance(node, yaml.MappingNode):
        parts = [(key.value, key, value) for key, value in node.value]
    elif isinstance(node, yaml.SequenceNode):
        parts = [(number, value, value) for number, value in enumerate(node.value)]
    for name, head, value in parts:
        yield f"{pointer}/{name}", head.start_mark.line + 1
        yield from _lines_below(value, f"{pointer}/{name}", visited)
