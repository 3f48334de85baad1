"""Models whose fields are described by the text below each of them.

Pydantic can read those texts, too, but does so as soon as a class is made: in each process, at each start, for schemas
that hardly any process is ever asked for. Here they are read when somebody asks.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Mapping
from functools import cache
from itertools import pairwise
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

_WITHOUT_FIELDS: Final = {"builtins", "enum", "msgspec", "pydantic", "typing"}
"""Packages whose classes are bases of ours and have no fields."""


class Described(BaseModel):
    """A model whose schema has the text below each field as its description."""

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler, /) -> JsonSchemaValue:
        schema = handler(core_schema)
        properties: dict[str, Any] = handler.resolve_ref_schema(schema).get("properties", {})
        for name, text in descriptions(cls).items():
            field_schema = properties.get(cls.model_fields[name].alias or name)
            if field_schema is not None:
                field_schema.setdefault("description", text)
        return schema


class Strict(Described):
    """A model that refuses unknown fields, and can't be changed."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True, defer_build=True)


@cache
def descriptions(model: type[BaseModel]) -> Mapping[str, str]:
    """The text below each field of a model that has one, or what the field itself gives as its description."""
    texts = field_texts(model)
    explicit = {name: field.description for name, field in model.model_fields.items() if field.description}
    return {name: text for name, text in {**texts, **explicit}.items() if name in model.model_fields}


def field_texts(model: type) -> dict[str, str]:
    """Return the text below each field of a model or dataclass that has one, those of its bases first."""
    texts: dict[str, str] = {}
    for each in reversed(model.__mro__):
        if each.__module__.partition(".")[0] not in _WITHOUT_FIELDS:
            texts |= _below(each)
    return texts


def _below(model: type) -> dict[str, str]:
    (definition,) = ast.parse(textwrap.dedent(inspect.getsource(model))).body
    lines = definition.body if isinstance(definition, ast.ClassDef) else []
    texts = {}
    for line, following in pairwise(lines):
        match line, following:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                texts[name] = inspect.cleandoc(text)
    return texts
