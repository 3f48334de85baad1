"""Triggers of schedules in documents: read, checked, and written again."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

from pydantic import ValidationError

from parallelrun_core.errors import InvalidInput
from parallelrun_core.schedules.occurrences import Occurrences, next_of
from parallelrun_core.schedules.trigger_base import Trigger
from parallelrun_core.schedules.triggers import kinds, model_of
from parallelrun_core.spec.problems import problem_of


def read_trigger(document: object, *, created: datetime, pointer: str = "/trigger") -> Trigger:
    """The trigger that a document describes.

    Args:
        created: when the schedule is made; it must be due at least once after that.
        pointer: where in the document it is.

    Raises:
        InvalidInput: with one problem for each wrong field.
    """
    if not isinstance(document, dict):
        raise InvalidInput.at(pointer, f"must be a mapping with a type, which is {_kinds()}")
    model = model_of(str(document.get("type")).lower())
    if model is None:
        raise InvalidInput.at(f"{pointer}/type", f"there is no trigger {document.get('type')!r}", _kinds())
    try:
        trigger = model.model_validate(document)
    except ValidationError as error:
        problems = (problem_of(model, details) for details in error.errors())
        placed = tuple(replace(each, pointer=pointer + each.pointer) for each in problems)
        raise InvalidInput(problems=placed) from None
    if not trigger.poll_s and next_of(occurrences(trigger, created=created, pointer=pointer), created) is None:
        raise InvalidInput.at(pointer, "nothing is ever due", "check end_time, and whether there are such days")
    return trigger


def parsed_trigger(document: dict[str, Any]) -> Trigger:
    """The trigger that was read before, as `as_document` gave it.

    Raises:
        InvalidInput, ValidationError: it isn't one that this release knows.
    """
    model = model_of(str(document.get("type")))
    if model is None:
        raise InvalidInput.at("/trigger/type", f"there is no trigger {document.get('type')!r}", _kinds())
    return model.model_validate(document)


def occurrences(trigger: Trigger, *, created: datetime, pointer: str = "/trigger") -> Occurrences:
    """Return when it is due, as `Trigger.occurrences` does.

    Raises:
        InvalidInput: a time, the zone or a field of the kind can't be read.
    """
    return trigger.occurrences(created=created, pointer=pointer)


def described(trigger: Trigger) -> str:
    """Return a line for people about when a trigger is due, by which clocks, and from and until when."""
    limits = (("from", trigger.start_time), ("until", trigger.end_time))
    between = (f"{word} {time}" for word, time in limits if time is not None)
    return ", ".join([f"{trigger.describe()} ({trigger.time_zone})", *between])


def as_document(trigger: Trigger) -> dict[str, Any]:
    return trigger.model_dump(mode="json", by_alias=True, exclude_defaults=True) | {"type": trigger.type}


def _kinds() -> str:
    return " or ".join(kinds())
