"""The contract with clients, as an OpenAPI document; the schemas of answers come from their classes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import import_module
from inspect import cleandoc, isclass
from pkgutil import iter_modules
from typing import Any, Final

import msgspec
from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel

from parallelrun_api.http.lazy_fastapi import LazyRoute
from parallelrun_api.models import Problem
from parallelrun_api.routes.computes import SCHEMAS as COMPUTES
from parallelrun_core import answers
from parallelrun_core.adviser import advice
from parallelrun_core.answers.answer import SCHEMAS
from parallelrun_core.computes.kinds import model_of
from parallelrun_core.datastores.definition import OF_TYPE
from parallelrun_core.described import field_texts
from parallelrun_core.limits.definition import Limit
from parallelrun_core.spec import JobSpec, PipelineSpec
from parallelrun_core.wire.finding import Level
from parallelrun_core.wire.states import JobState, NodeState, StepState

_REF: Final = "#/components/schemas/{model}"
_SECURITY_SCHEMES: Final = {
    "token": {
        "type": "http",
        "scheme": "bearer",
        "description": "Not needed on a loopback address if no token was set.",
    }
}
_ENUMS: Final = {
    each.__name__: {"title": each.__name__, "type": "string", "enum": [*each], "description": each.__doc__}
    for each in (JobState, Level, NodeState, StepState)
}


def document(app: FastAPI, routes: Iterable[LazyRoute], subjects: Mapping[str, str]) -> dict[str, Any]:
    """The document of an app: what FastAPI derives, with what it can't know.

    Args:
        routes: its operations.
        subjects: of the operations, with what is said of each.
    """
    whole = get_openapi(
        title=app.title,
        version=app.version,
        description=app.description,
        license_info=app.license_info,
        routes=[each.api_route for each in routes],
        tags=[{"name": tag, "description": about} for tag, about in subjects.items()],
    )
    components = whole.setdefault("components", {})
    schemas = components.setdefault("schemas", {})
    defined: dict[str, type[BaseModel]] = {model.__name__: model for model in OF_TYPE.values()}
    defined["Limit"] = Limit
    defined |= {title: model_of(kind) for kind, title in COMPUTES.items()}
    others: list[tuple[str, type[BaseModel]]] = [(model.__name__, model) for model in (JobSpec, PipelineSpec, Problem)]
    for title, model in [*others, *defined.items()]:
        schema = {**model.model_json_schema(ref_template=_REF), "title": title}
        for name, each in {**schema.pop("$defs", {}), title: schema}.items():
            if schemas.setdefault(name, each) != each:
                raise ValueError(f"two models have the name {name}: a client would take one for the other")
    fill_in_answers(schemas)
    _close_patterns(schemas)
    for title in defined:
        schemas[title]["required"].remove("name")  # the path has it
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    components["schemas"] = dict(sorted(schemas.items()))
    components["securitySchemes"] = _SECURITY_SCHEMES
    whole["security"] = [{"token": []}]
    return whole


def _close_patterns(part: Any) -> None:
    """Say of each object whose keys have a pattern that it has no other keys, which pydantic leaves out."""
    if isinstance(part, list):
        for each in part:
            _close_patterns(each)
    elif isinstance(part, dict):
        if "patternProperties" in part:
            part["additionalProperties"] = False
        for each in part.values():
            _close_patterns(each)


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
