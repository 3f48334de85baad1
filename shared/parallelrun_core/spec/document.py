"""From YAML or JSON to plain data, changes to them from a command line, and wrong fields as problems."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any, Final

import yaml
from pydantic import BaseModel
from pydantic_core import PydanticCustomError

from parallelrun_core.errors import InvalidInput, Problem

_MAX_DOCUMENT_BYTES: Final = 1 << 20
_BESIDE_A_PATH: Final = ("path", "type", "mode")
_TAGGED: Final = "inputs"
"""The field whose entries are one of two models: pydantic names the one that it chose in the place of an error."""


def load_document(text: str | bytes) -> object:
    """Read YAML or JSON (which is YAML, too) without creating any object but plain ones.

    Raises:
        InvalidInput: it can't be read, with the line.
    """
    if len(text) > _MAX_DOCUMENT_BYTES:
        raise InvalidInput("The job spec is larger than 1 MiB.")
    try:
        return yaml.safe_load(text)
    except Exception as error:  # PyYAML lets through whatever its constructors run into
        raise InvalidInput.at("", f"not readable as YAML or JSON: {error}") from error


def set_field(document: object, assignment: str) -> None:
    """Apply one `path=value` from a command line; the value is read as YAML, and what is no YAML is a plain text.

    A path goes through mappings by name and through lists by number, as in `inputs.images.path` or `tasks.0.name`;
    a mapping on the way is made when it isn't there. A text that is short for a mapping with a `path` becomes one.

    Raises:
        InvalidInput: no '=', or the path goes through something that has no parts.
    """
    path, equals, text = assignment.partition("=")
    if not equals or not path:
        raise InvalidInput.at("--set", f"{assignment!r} is not PATH=VALUE")
    *folders, last = path.split(".")
    for name, next_name in zip(folders, [*folders[1:], last], strict=False):
        inner = _part(document, name, path)
        if inner is None or (isinstance(inner, str) and next_name in _BESIDE_A_PATH):
            inner = {} if inner is None else {"path": inner}
            _put(document, name, inner, path)
        document = inner
    _put(document, last, _value(path, text), path)


def _value(path: str, text: str) -> object:
    if text.startswith(("|", ">")):  # the head of a text of many lines, which none on a command line is
        return text
    try:
        return load_document(text)
    except InvalidInput as error:
        if text.startswith(("[", "{")):
            raise InvalidInput.at("--set", f"{path}={text}: this list or mapping can't be read as YAML") from error
        return text


def _part(document: object, name: str, path: str) -> object:
    match document:
        case dict():
            return document.get(name)
        case list() if name.isdecimal() and int(name) < len(document):
            part: object = document[int(name)]
            return part
    raise InvalidInput.at("--set", f"{path!r}: there is nothing called {name!r} that has parts")


def _put(document: object, name: str, value: object, path: str) -> None:
    match document:
        case dict():
            document[name] = value
        case list() if name.isdecimal() and int(name) < len(document):
            document[int(name)] = value
        case list() if name.isdecimal() and int(name) == len(document):
            document.append(value)
        case _:
            raise InvalidInput.at("--set", f"{path!r}: {name!r} can't be set here")


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
    message = str(details["msg"]).removeprefix("Value error, ")
    given = details.get("input")
    if isinstance(given, str | int | float | bool) and where and where[0] != "environment_variables":
        message += f", not {given!r}"
    return Problem(pointer=pointer, message=message[0].lower() + message[1:])


def _known(model: type[BaseModel], location: list[str]) -> Iterable[str]:
    """The fields that there are where an unknown one was found."""
    from parallelrun_core.spec.fields import Environment, Input, Literal, Output

    match location:
        case ["inputs", _, "literal", *_]:
            return list(Literal.model_fields)
        case ["inputs", _, _, *_]:
            return list(Input.model_fields)
        case ["outputs", _, _, *_]:
            return list(Output.model_fields)
        case ["environment", _, *_]:
            return list(Environment.model_fields)
    return list(model.model_fields)
