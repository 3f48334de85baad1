"""What pydantic finds wrong with a document, as problems in words that need no knowledge of Python."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any, Final

from pydantic import BaseModel
from pydantic_core import PydanticCustomError

from parallelrun_core.errors import Problem
from parallelrun_core.spec.fields import Environment, Input, Output, ValueInput, size_meant

_TAGGED: Final = "inputs"
"""The field whose entries are one of two models: pydantic names the one that it chose in the place of an error."""
_NEEDED: Final = {
    "bool": "true or false",
    "dict": "a mapping",
    "float": "a number",
    "int": "a whole number",
    "list": "a list",
    "model": "a mapping",
    "string": "a text",
    "tuple": "a list",
}
"""By what pydantic's name of an error begins with; the end says whether it is the type, or what is in it."""
_WRONG_TYPE: Final = ("type", "parsing", "from_float", "attributes_type", "parsing_size")


def at(field: str, message: str) -> PydanticCustomError:
    """What a check of the whole job has against one of its fields."""
    return PydanticCustomError("job", "{message}", {"message": message, "field": field})


def problem_of(model: type[BaseModel], details: Any) -> Problem:
    """One of pydantic's errors as users see it."""
    field = details.get("ctx", {}).get("field", "")
    location = [str(part) for part in details["loc"] or (field.split("/") if field else ())]
    where = location[:2] + location[3:] if location[:1] == [_TAGGED] else location
    pointer = "/".join(["", *where]) if where else ""
    if details["type"] == "extra_forbidden":
        close = get_close_matches(where[-1], _known(model, location), n=1)
        return Problem(pointer=pointer, message="unknown field", hint=f"did you mean {close[0]!r}?" if close else "")
    if details["type"] == "missing":
        return Problem(pointer=pointer, message="this field is required")
    message, given, hint = _message(details), details.get("input"), ""
    if isinstance(given, str | int | float | bool) and where and where[0] != "environment_variables":
        message += f", not {given!r}"
        meant = size_meant(str(given)) if where[-1] == "mini_batch_size" else ""
        hint = f"did you mean {meant!r}?" if meant else ""
    return Problem(pointer=pointer, message=message, hint=hint)


def _message(details: Any) -> str:
    name, _, what = str(details["type"]).partition("_")
    if name in _NEEDED and what in _WRONG_TYPE:
        return f"{_NEEDED[name]} is needed"
    if details["type"] == "string_pattern_mismatch":  # the job's name has the one pattern that there is
        return "a name has 1 to 128 letters, digits, spaces and . _ -, and begins with a letter or digit"
    message = str(details["msg"]).removeprefix("Value error, ").removeprefix("Input ").removeprefix("String ")
    return message[0].lower() + message[1:]


def _known(model: type[BaseModel], location: list[str]) -> Iterable[str]:
    """The fields that there are where an unknown one was found."""
    match location:
        case ["inputs", _, "value", *_]:
            return list(ValueInput.model_fields)
        case ["inputs", _, _, *_]:
            return list(Input.model_fields)
        case ["outputs", _, _, *_]:
            return list(Output.model_fields)
        case ["environment", _, *_]:
            return list(Environment.model_fields)
    return list(model.model_fields)
