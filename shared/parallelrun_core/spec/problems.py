"""Problems of a spec: translates pydantic's errors to words that need no knowledge of Python."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any, Final

from pydantic import BaseModel
from pydantic_core import PydanticCustomError

from parallelrun_core.errors import Problem
from parallelrun_core.spec.environment import Build, Environment
from parallelrun_core.spec.fields import Input, Output, ValueInput, size_meant

_TAGGED: Final = "inputs"
"""The field whose entries are one of two models: pydantic puts the name of the chosen one into an error's location."""
_EXPECTED: Final = {
    "bool": "true or false",
    "dict": "a mapping",
    "float": "a number",
    "int": "a whole number",
    "list": "a list",
    "model": "a mapping",
    "string": "a string",
    "tuple": "a list",
}
"""By the beginning of pydantic's name for an error; its end says whether the type is wrong, or the content."""
_WRONG_TYPE: Final = ("type", "parsing", "from_float", "attributes_type", "parsing_size")


def at(field: str, message: str) -> PydanticCustomError:
    """The error of a check of the whole job that concerns one of its fields."""
    return PydanticCustomError("job", "{message}", {"message": message, "field": field})


def problem_of(model: type[BaseModel], details: Any) -> Problem:
    """Return one of pydantic's errors, as users see it."""
    field = details.get("ctx", {}).get("field", "")
    location = [str(part) for part in details["loc"] or (field.split("/") if field else ())]
    where = location[:2] + location[3:] if location[:1] == [_TAGGED] else location
    pointer = "/".join(["", *where]) if where else ""
    if details["type"] == "extra_forbidden":
        close = get_close_matches(where[-1], _known(model, location), n=1)
        return Problem(pointer=pointer, message="unknown field", hint=f"did you mean {close[0]!r}?" if close else "")
    if details["type"] == "missing":
        return Problem(pointer=pointer, message="this field is required", hint=details.get("ctx", {}).get("hint", ""))
    message, wrong_value, hint = _message(details), details.get("input"), ""
    if isinstance(wrong_value, str | int | float | bool) and where and where[0] != "environment_variables":
        message += (
            "" if "://" in str(wrong_value) else f", not {wrong_value!r}"
        )  # a URL is named by its check, or has a secret
        suggestion = size_meant(str(wrong_value)) if where[-1] == "mini_batch_size" else ""
        hint = f"did you mean {suggestion!r}?" if suggestion else ""
    return Problem(pointer=pointer, message=message, hint=hint)


def _message(details: Any) -> str:
    name, _, reason = str(details["type"]).partition("_")
    if name in _EXPECTED and reason in _WRONG_TYPE:
        return f"must be {_EXPECTED[name]}"
    if details["type"] == "string_pattern_mismatch":  # the job's name has the one pattern that there is
        return "a name has 1 to 128 letters, digits, spaces and . _ -, and begins with a letter or digit"
    message = str(details["msg"]).removeprefix("Value error, ").removeprefix("Input ").removeprefix("String ")
    if message.startswith("should "):
        message = message.replace("should", "must", 1)
    return message[0].lower() + message[1:]


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
