"""Problems of a spec, with what pydantic's errors say of its inputs and its environment."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from pydantic import BaseModel
from pydantic_core import PydanticCustomError

from parallelrun_core import problems
from parallelrun_core.errors import Problem
from parallelrun_core.spec.environment import Build, Environment
from parallelrun_core.spec.fields import Input, Output, ValueInput

_TAGGED: Final = "inputs"
"""The field whose entries are one of two models: pydantic puts the name of the chosen one into an error's location."""


def at(field: str, message: str) -> PydanticCustomError:
    """The error of a check of the whole job that concerns one of its fields."""
    return PydanticCustomError("job", "{message}", {"message": message, "field": field})


def problem_of(model: type[BaseModel], details: Any) -> Problem:
    """Return one of pydantic's errors, as users see it."""
    location = problems.location_of(details)
    where = location[:2] + location[3:] if location[:1] == [_TAGGED] else location
    return problems.explain(details, where, _known(model, location))


def _known(model: type[BaseModel], location: list[str]) -> Iterable[str]:
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
