"""Inputs that are numbers, strings or truth values: converted to their declared type, and checked."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from parallelrun_core.azure.findings import DocumentLocation, Findings, quoted
from parallelrun_core.azure.v2_models import LITERAL_TYPES, GivenInput
from parallelrun_core.spec.fields import of_type


def read_literal(
    value: Any, kind: str | None, declared: GivenInput | None, location: DocumentLocation, findings: Findings
) -> dict[str, Any] | None:
    """The input, as the job spec has it; None, with a problem, when it doesn't have its declared type."""
    if not isinstance(value, bool | int | float | str):
        findings.wrong(location.pointer, "must be a number, a string, a truth value or an input with a path")
        return None
    if kind is not None and kind not in LITERAL_TYPES:
        findings.wrong(location.pointer, f"{value!r} is a value; an input of type {kind} has a path")
        return None
    try:
        value = of_type(kind, value)
    except (ValueError, OverflowError):
        findings.wrong(location.pointer, f"{str(value)!r} is not of type {kind}")
        return None
    if declared is not None and isinstance(value, int | float):
        below = declared.min is not None and value < declared.min
        above = declared.max is not None and value > declared.max
        if below or above:
            findings.wrong(location.pointer, f"{value!r} is {_outside(declared)}")
    if declared is not None and declared.enum is not None and value not in _choices(kind, declared.enum):
        findings.wrong(location.pointer, f"{value!r} is not one of {quoted(map(str, declared.enum))}")
    return {"value": value}


def _choices(kind: str | None, declared: list[Any]) -> Iterator[bool | int | float | str]:
    for choice in declared:
        with suppress(ValueError, OverflowError, TypeError):
            yield of_type(kind, choice)


def _outside(declared: GivenInput) -> str:
    """Return what is wrong with a number outside of the declared range."""
    least, most = (int(end) if end is not None and end.is_integer() else end for end in (declared.min, declared.max))
    if most is None:
        return f"less than {least}"
    return f"greater than {most}" if least is None else f"not between {least} and {most}"
