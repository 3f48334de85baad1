"""Components: steps that are used again. Their content: type, and the document with what it refers to."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Final, Literal

from parallelrun_core.assets.definition import AssetDocument
from parallelrun_core.assets.inlining import Inlining
from parallelrun_core.errors import InvalidInput
from parallelrun_core.names.assets import Names, UnknownAsset, reference_of
from parallelrun_core.problems import did_you_mean

_TYPES: Final = ("parallel", "command", "pipeline")
_COMPONENTS: Final = "type: parallel, type: command or type: pipeline"
_OWN_FIELDS: Final = ("name", "version", "description", "tags", "properties")


class ComponentAsset(AssetDocument):
    """A step that is used again and again; the rest of its document is checked when a job uses it."""

    type: Literal["parallel", "command", "pipeline"]
    document: dict[str, Any]

    def content(self) -> dict[str, Any]:
        return {"type": self.type, "document": self.document}

    @classmethod
    def inlined(cls, fields: dict[str, Any], inlining: Inlining) -> dict[str, Any]:
        """The fields of any asset, and the whole document with what it refers to."""
        if "document" in fields and "jobs" not in fields and "task" not in fields:  # as it is shown, and sent
            return fields
        kind = fields.get("type")
        if kind is None and "task" in fields:
            kind = "parallel"
        if not isinstance(kind, str) or kind.lower() not in _TYPES:
            hint = did_you_mean(str(kind).lower(), _TYPES, _COMPONENTS)
            raise InvalidInput.at("/type", f"a component of type {kind!r} can't be used here", hint)
        document = inlining.part({**fields, "type": kind.lower()}, "", 0)
        component: dict[str, Any] = {field: fields[field] for field in _OWN_FIELDS if field in fields}
        return {**component, "type": kind.lower(), "document": document}

    @classmethod
    def pinned(cls, content: dict[str, Any], names: Names) -> dict[str, Any]:
        return {**content, "document": _pinned(content["document"], names)}


def _pinned(document: dict[str, Any], names: Names) -> dict[str, Any]:
    """The document of a component with a version in place of each label, as far as names are known: what it means must
    not change either."""
    copy = dict(document)
    for kind in ("environment", "component"):
        value = copy.get(kind)
        if isinstance(value, dict) and kind == "component":
            copy[kind] = _pinned(value, names)
        elif isinstance(value, str) and (reference := reference_of(value)) is not None and reference.label:
            with suppress(UnknownAsset):
                asset = names.asset(kind, value)
                copy[kind] = asset.id if not reference.registry else value
    if isinstance(copy.get("task"), dict):
        copy["task"] = _pinned(copy["task"], names)
    if isinstance(copy.get("jobs"), dict):
        copy["jobs"] = {
            name: _pinned(step, names) if isinstance(step, dict) else step for name, step in copy["jobs"].items()
        }
    return copy


DOCUMENT: Final = ComponentAsset
