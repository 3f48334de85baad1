"""Documents of endpoints and deployments, as Azure ML has them (reference §3.9).

A deployment is read as if it were invoked, with placeholders for what an invocation gives: so all that is wrong with it
is said when it is defined.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from pydantic import Field

from parallelrun_core.azure.forms import is_of_pipeline
from parallelrun_core.azure.invocation import DATA, invoked
from parallelrun_core.described import Strict
from parallelrun_core.endpoints.records import NAME_PATTERN, PLACE, Slot
from parallelrun_core.errors import InvalidInput
from parallelrun_core.intake.reading import Reading, read_job
from parallelrun_core.names.assets import Names
from parallelrun_core.problems import At, Problems, another_name, validated
from parallelrun_core.spec.pipeline_steps import later_path
from parallelrun_core.spec.problems import problem_of
from parallelrun_core.untrusted.document import load_document

_NAME: Final = "1 to 128 letters, digits, '_' and '-', not beginning with '-'"
_DATA_TYPES: Final = ("uri_folder", "uri_file", "mltable")
_NAMED: Final = "azureml:"


class EndpointDocument(Strict):
    """The fields of an endpoint's document, as Azure ML has them."""

    schema_: Any = Field(default=None, alias="$schema")
    name: str | None = None
    display_name: str | None = None
    description: str | None = None
    tags: dict[str, str] | None = None
    properties: dict[str, Any] | None = None
    auth_mode: str | None = None
    defaults: dict[str, str] | None = None


@dataclass(frozen=True, kw_only=True)
class EndpointReading:
    """The content of an endpoint's document."""

    name: str
    display_name: str
    description: str
    tags: dict[str, str]
    default_deployment: str | None
    """None: it doesn't say."""


@dataclass(frozen=True, kw_only=True)
class DeploymentReading:
    """The content of a deployment's document."""

    name: str
    endpoint: str
    description: str
    tags: dict[str, str]
    reading: Reading
    """Its job, with placeholders for what an invocation gives."""
    slots: dict[str, Slot] = field(default_factory=dict)
    """The inputs of a pipeline that an invocation gives."""


def read_endpoint(document: object, *, name: str = "") -> EndpointReading:
    """The endpoint that a document describes.

    Args:
        name: what it must be called; then the document need not say so.

    Raises:
        InvalidInput: with one problem for each field of a wrong type, or else for each that is wrong otherwise.
    """
    if not isinstance(document, dict):
        raise InvalidInput.at("", "the document of an endpoint is a mapping")
    endpoint_document = validated(EndpointDocument, document, problem_of=problem_of)
    problems = Problems()
    for field_name in endpoint_document.defaults or {}:
        if field_name != "deployment_name":
            problems.wrong(f"/defaults/{field_name}", "unknown field", "deployment_name is known")
    called = _gathered_name(endpoint_document.name, name, At("/name", problems))
    problems.check()
    return EndpointReading(
        name=called,
        display_name=endpoint_document.display_name or "",
        description=endpoint_document.description or "",
        tags=endpoint_document.tags or {},
        default_deployment=(endpoint_document.defaults or {}).get("deployment_name"),
    )


def read_deployment(
    document: object, *, name: str = "", endpoint: str = "", folder: Path | None = None, names: Names | None = None
) -> DeploymentReading:
    """The deployment that a document describes.

    Args:
        name, endpoint: what it must be called, and whose it must be; then the document need not say so.
        folder: of its relative paths. None: it came over the network, without files beside it.
        names: where names of assets are looked up.

    Raises:
        InvalidInput: with one problem for each wrong field of its own, or else for each of its job.
    """
    if not isinstance(document, dict):
        raise InvalidInput.at("", "the document of a deployment is a mapping")
    problems = Problems()
    called = _gathered_name(document.get("name"), name, At("/name", problems))
    endpoint_name = _gathered_name(document.get("endpoint_name"), endpoint, At("/endpoint_name", problems))
    tags = {} if document.get("tags") is None else document["tags"]
    At("/tags", problems).is_of(tags, dict, "a mapping")
    description = "" if document.get("description") is None else document["description"]
    At("/description", problems).is_of(description, str, "a string")
    problems.check()
    document = {**document, "name": called, "endpoint_name": endpoint_name}
    if is_of_pipeline(document):
        slots = _slots(document, folder, names)
        places = {each: _place(each, slot) for each, slot in slots.items()}
    else:
        slots, places = {}, {DATA: {"path": _path(DATA)}}
    reading = read_job(invoked(document, inputs=places), folder=folder, names=names)
    return DeploymentReading(
        name=called,
        endpoint=endpoint_name,
        description=description,
        tags={str(key): str(value) for key, value in tags.items()},
        reading=reading,
        slots=slots,
    )


def checked_name(document_name: object, expected_name: str, pointer: str) -> str:
    """A name that is safe in a path and a URL.

    Raises:
        InvalidInput: it isn't, or is another one than it must be.
    """
    problems = Problems()
    called = _gathered_name(document_name, expected_name, At(pointer, problems))
    problems.check()
    return called


def _gathered_name(document_name: object, expected_name: str, at: At) -> str:
    """A name, as `checked_name` says; what is wrong with it becomes a problem of its place."""
    called = document_name if document_name is not None else expected_name
    if not isinstance(called, str) or not re.fullmatch(NAME_PATTERN, called):
        at.wrong(f"must be {_NAME}" if called else "this field is required")
    elif expected_name and called != expected_name:
        problem = another_name(expected_name)
        at.wrong(problem.message, problem.hint)
    return str(called)


def _slots(document: Mapping[str, Any], folder: Path | None, names: Names | None) -> dict[str, Slot]:
    """Return what an invocation of a pipeline gives: its inputs that are data or texts. Numbers are those of the
    document.

    Raises:
        InvalidInput: with one problem for each input that neither has a value nor can be given one.
    """
    inputs = document.get("inputs")
    values = inputs if isinstance(inputs, dict) else {}
    slots, problems = {}, Problems()
    for name, one in _declared(document, folder, names).items():
        default = values[name] if name in values else one.get("path", one.get("default"))
        if isinstance(default, dict):
            default = default.get("path")
        kind = str(one.get("type", "uri_folder"))
        if kind in _DATA_TYPES or kind == "string":
            slots[name] = Slot(type=kind, default=None if default is None else str(default))
        elif default is None and not one.get("optional"):
            message = f"the input {name!r} is of type {kind}, which an invocation can't give"
            problems.wrong(f"/inputs/{name}", message, f"give it a value in the deployment: inputs: {{{name}: …}}")
    problems.check()
    return slots


def _declared(document: Mapping[str, Any], folder: Path | None, names: Names | None) -> dict[str, dict[str, Any]]:
    """The inputs of the pipeline: those that its component declares, or that its job definition has."""
    pipeline = document.get("component") or document.get("job_definition")
    if isinstance(pipeline, str) and pipeline.startswith(_NAMED) and names is not None:
        pipeline = names.asset("component", pipeline).content["document"]
    elif isinstance(pipeline, str) and folder is not None:
        try:
            pipeline = load_document((folder / pipeline.removeprefix("file:")).read_bytes())
        except OSError:
            pipeline = None  # told by whoever reads it for its steps
    inputs = pipeline.get("inputs") if isinstance(pipeline, dict) else None
    inputs = inputs if isinstance(inputs, dict) else {}
    return {
        str(name): one if isinstance(one, dict) else {"type": _type_of(one), "default": one}
        for name, one in inputs.items()
    }


def _type_of(value: object) -> str:
    if isinstance(value, bool):
        return "boolean"
    return "string" if isinstance(value, str) else "number"


def _place(name: str, slot: Slot) -> Any:
    return {"path": _path(name), "type": slot.type} if slot.is_data else PLACE.format(name)


def _path(name: str) -> str:
    return later_path(PLACE.format(name))
