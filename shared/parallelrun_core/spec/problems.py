"""Problems of a spec, with what pydantic's errors say of its inputs and its environment, and the lines of its file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

import yaml
from pydantic import BaseModel
from pydantic_core import PydanticCustomError

from parallelrun_core import problems
from parallelrun_core.errors import Problem
from parallelrun_core.spec.environment import Build, Environment
from parallelrun_core.spec.fields import Input, Output, ValueInput
from parallelrun_core.untrusted.bounded_yaml import BoundedLoader

_NUMBER_TAGS: Final = frozenset({"tag:yaml.org,2002:int", "tag:yaml.org,2002:float"})
_TAGGED: Final = "inputs"
"""The field whose entries are one of two models: pydantic puts the name of the chosen one into an error's location."""

JOB_HINTS: Final[Mapping[str, str]] = {
    "display_name": "it is called `name` here",
    "limits": "`run_invocation_timeout: SECONDS` is the limit of a command",
    "resources": "`instance_count: N` beside the other fields says on how many nodes the job runs",
    "retry_settings": "`run_max_try` is one more than its max_retries, `run_invocation_timeout` its timeout",
    "task": "its fields are the job's own: `code`, `entry_script`, `environment`, `program_arguments`",
}
"""What stands in a job for fields of a step of Azure ML, whose names look like none of ours."""


def at(field: str, message: str) -> PydanticCustomError:
    """The error of a check of the whole job that concerns one of its fields."""
    return PydanticCustomError("job", "{message}", {"message": message, "field": field})


def problem_of(model: type[BaseModel], details: Any, hints: Mapping[str, str] = {}) -> Problem:
    """Return one of pydantic's errors, as users see it.

    Args:
        hints: what to do, by the name of an unknown field of the document itself.
    """
    location = problems.location_of(details)
    where = location[:2] + location[3:] if location[:1] == [_TAGGED] else location
    problem = problems.explain(details, where, _known_fields(model, location))
    if details["type"] == "extra_forbidden" and len(where) == 1 and (hint := hints.get(where[0], "")):
        return replace(problem, hint=hint)
    if details["type"] == "string_pattern_mismatch" and (field := model.model_fields.get("/".join(location))):
        return replace(problem, hint="".join(f"such as {each!r}" for each in (field.examples or ())[:1]))
    return problem


def _known_fields(model: type[BaseModel], location: list[str]) -> Iterable[str]:
    """The known fields at the location of an unknown one."""
    match location:
        case ["inputs", _, "value", *_]:
            return list(ValueInput.model_fields)
        case ["inputs", _, _, *_]:
            return list(Input.model_fields)
        case ["outputs", _, _, *_]:
            return list(Output.model_fields)
        case ["environment", "build", _, *_]:
            return list(Build.model_fields)
        case ["environment", _, *_]:
            return list(Environment.model_fields)
    return list(model.model_fields)


def lines_of(text: str | bytes) -> dict[str, int]:
    """The line of each field, by its pointer, in a document that can be read."""
    return {pointer: head.start_mark.line + 1 for pointer, head, _ in _fields_of(text)}


def rewritten_numbers(text: str | bytes) -> dict[str, tuple[str, int | float]]:
    """The numbers of a document that are written in another way than they are printed, such as `010` or `1_000`: each
    as it is written, and its value, by its pointer."""
    loader = BoundedLoader("")
    numbers = {}
    for pointer, _, node in _fields_of(text):
        if isinstance(node, yaml.ScalarNode) and node.tag in _NUMBER_TAGS:
            value = loader.construct_object(node)
            if str(value) != node.value:
                numbers[pointer] = (node.value, value)
    return numbers


def line_of(pointer: str, lines: dict[str, int]) -> int | None:
    """The line of a field; that of its nearest parent if it is missing. None if the document has none of these."""
    while pointer and pointer not in lines:
        pointer = pointer.rpartition("/")[0]
    return lines.get(pointer)


def _fields_of(text: str | bytes) -> Iterator[tuple[str, yaml.Node, yaml.Node]]:
    """The pointer of each field, where it begins, and its value."""
    root = yaml.compose(text, Loader=BoundedLoader)
    return _fields_below(root, "", set()) if root else iter(())


def _fields_below(node: yaml.Node, pointer: str, visited: set[int]) -> Iterator[tuple[str, yaml.Node, yaml.Node]]:
    if id(node) in visited:  # aliases could be followed without end
        return
    visited.add(id(node))
    parts: list[tuple[object, yaml.Node, yaml.Node]] = []
    if isinstance(node, yaml.MappingNode):
        parts = [(key.value, key, value) for key, value in node.value]
    elif isinstance(node, yaml.SequenceNode):
        parts = [(number, value, value) for number, value in enumerate(node.value)]
    for name, head, value in parts:
        yield f"{pointer}/{name}", head, value
        yield from _fields_below(value, f"{pointer}/{name}", visited)
