"""Schemas of answers in the OpenAPI document, from their classes."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from inspect import cleandoc, isclass
from pkgutil import iter_modules
from typing import Any, Final

import msgspec

from parallelrun_core import answers
from parallelrun_core.adviser import advice
from parallelrun_core.answers.answer import SCHEMAS
from parallelrun_core.described import field_texts
from parallelrun_core.wire.finding import Level
from parallelrun_core.wire.states import JobState, NodeState, StepState

_ENUMS: Final = {
    each.__name__: {"title": each.__name__, "type": "string", "enum": [*each], "description": each.__doc__}
    for each in (JobState, Level, NodeState, StepState)
}


def fill_in_answers(schemas: dict[str, Any]) -> None:
    """Put the schema of each answer, and of each part of one, in place of the empty one that FastAPI has made for its
    name.

    Raises:
        ValueError: two classes have one name.
    """
    classes = _classes()
    bare_classes = [classes[name] for name, schema in schemas.items() if not schema]
    _, described = msgspec.json.schema_components(bare_classes, ref_template=SCHEMAS + "/{name}")
    if double := [name for name in described if name not in classes.keys() | _ENUMS.keys() or schemas.get(name)]:
        raise ValueError(f"two models have the name {double[0]}: a client would take one for the other")
    texts = {name: field_texts(classes[name]) for name in described.keys() - _ENUMS.keys()}
    schemas |= _ENUMS | {name: _complete(described[name], each) for name, each in texts.items()}


def _classes() -> Mapping[str, type[msgspec.Struct]]:
    """Return the classes of answers by name, those from elsewhere that they consist of included."""
    modules = [advice, *(import_module(f"{answers.__name__}.{each.name}") for each in iter_modules(answers.__path__))]
    return {
        name: each
        for module in modules
        for name, each in vars(module).items()
        if isclass(each) and issubclass(each, msgspec.Struct)
    }


def _complete(schema: dict[str, Any], texts: Mapping[str, str]) -> dict[str, Any]:
    """Return a schema with the descriptions of its fields, all of which are sent."""
    description = cleandoc(schema["description"])
    properties = {name: _field(each, texts.get(name)) for name, each in schema["properties"].items()}
    return {**schema, "description": description, "properties": properties, "required": list(properties)}


def _field(schema: dict[str, Any], text: str | None) -> dict[str, Any]:
    """Return the schema of a field, without a default, as nothing is left out."""
    keywords = {name: each for name, each in _pruned(schema).items() if name != "default"}
    return keywords | ({"description": text} if text else {})


def _pruned(schema: Any) -> Any:
    """Return a schema in which what refers to another one says nothing of its own."""
    if isinstance(schema, list):
        return [_pruned(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {"$ref": schema["$ref"]} if "$ref" in schema else {name: _pruned(each) for name, each in schema.items()}
