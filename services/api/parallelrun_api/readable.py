"""Lists of definitions, of which a damaged one must not hide the others."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from parallelrun_core.errors import CorruptLog, NewerSchema, NotFound
from parallelrun_core.service import telemetry

_Definition = TypeVar("_Definition")


def readable(noun: str, names: Iterable[str], get: Callable[[str], _Definition]) -> list[_Definition]:
    """Return all definitions of these names that can be read; those that can't are logged, and deleted ones left out.

    Args:
        noun: the kind, for the log.
    """
    definitions = []
    for name in names:
        try:
            definitions.append(get(name))
        except (CorruptLog, NewerSchema, NotFound) as error:
            telemetry.logger().warning(f"{noun}_unreadable", error=error.message, **{noun: name})
    return definitions
