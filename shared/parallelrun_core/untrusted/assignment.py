"""Changes of single fields of a document, as a command line has them: `PATH=VALUE`."""

from __future__ import annotations

from itertools import pairwise
from typing import Final

from parallelrun_core.errors import InvalidInput
from parallelrun_core.untrusted.document import load_document

_BESIDE_A_PATH: Final = ("path", "type", "mode")
_INPUTS: Final = "inputs"
_PLACES: Final = (_INPUTS, "outputs")
"""The fields whose entries are short for mappings with a `path`."""
_ONLY_INPUT: Final = "data"
"""The name of the only input where `inputs` is a plain text."""


def set_field(document: object, assignment: str) -> None:
    """Apply one `PATH=VALUE` to a document; a value that can't be read as YAML is a plain string.

    A path goes through mappings by name and through lists by number, as in `inputs.images.path` or `tasks.0.name`;
    missing mappings on the way are created. A string that is short for a mapping with a `path`, or for inputs of which
    one is called `data`, becomes one.

    Raises:
        InvalidInput: there is no '=', or the path goes through something without parts.
    """
    path, equals, text = assignment.partition("=")
    if not equals or not path:
        raise InvalidInput.at("--set", f"{assignment!r} is not PATH=VALUE")
    names = path.split(".")
    for parent, (name, next_name) in zip(["", *names], pairwise(names), strict=False):
        value = _child(document, name, path)
        longhand = _longhand(parent, name, value, next_name)
        if longhand is not value:
            _set(document, name, longhand, path)
        document = longhand
    _set(document, names[-1], _value(path, text), path)


def _longhand(parent: str, name: str, value: object, child: str) -> object:
    """The mapping for which a value is short, if it can have such a child; else the value."""
    if value is None:
        return {}
    if isinstance(value, str) and (parent in _PLACES or child in _BESIDE_A_PATH):
        return {"path": value}
    return {_ONLY_INPUT: value} if isinstance(value, str) and name == _INPUTS else value


def _value(path: str, text: str) -> object:
    if text.startswith(("|", ">")):  # in YAML the head of a text of many lines, which no value on a command line is
        return text
    try:
        return load_document(text)
    except InvalidInput as error:
        if text.startswith(("[", "{")):
            raise InvalidInput.at("--set", f"{path}={text}: this list or mapping can't be read as YAML") from error
        return text


def _child(document: object, name: str, path: str) -> object:
    match document:
        case dict():
            return document.get(name)
        case list() if name.isdecimal() and int(name) < len(document):
            child: object = document[int(name)]
            return child
    raise _no_part(document, name, path)


def _set(document: object, name: str, value: object, path: str) -> None:
    match document:
        case dict():
            document[name] = value
        case list() if name.isdecimal() and int(name) < len(document):
            document[int(name)] = value
        case list() if name.isdecimal() and int(name) == len(document):
            document.append(value)
        case _:
            raise _no_part(document, name, path)


def _no_part(document: object, name: str, path: str) -> InvalidInput:
    if isinstance(document, list):
        return InvalidInput.at("--set", f"{path!r}: the list before {name!r} has {len(document)} parts, from 0")
    return InvalidInput.at("--set", f"{path!r}: what stands before {name!r} is a plain value, and has no parts")
