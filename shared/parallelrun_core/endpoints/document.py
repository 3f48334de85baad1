"""Documents of endpoints and deployments, as Azure ML has them (reference §3.9).

A deployment is read as if it were invoked, with placeholders for what an invocation gives: so all that is wrong with it
is said when it is defined.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from pydantic import Field

from parallelrun_core.azure.components import open_component
from parallelrun_core.azure.findings import DocumentLocation, Findings
from parallelrun_core.azure.forms import is_of_pipeline
from parallelrun_core.azure.invocation import DATA, invoked
from parallelrun_core.described import Strict
from parallelrun_core.endpoints.records import PLACE, Slot
from parallelrun_core.errors import InvalidInput
from parallelrun_core.intake.reading import Reading, read_job
from parallelrun_core.names.assets import Names
from parallelrun_core.names.patterns import PLAIN_NAME, in_words
from parallelrun_core.problems import At, Problems, another_name, validated
from parallelrun_core.spec.pipeline_steps import later_path
from parallelrun_core.spec.problems import problem_of

_DATA_TYPES: Final = ("uri_folder", "uri_file", "mltable")


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
    name = checked_name(endpoint_document.name, name, At("/name", problems))
    problems.check()
    return EndpointReading(
        name=name,
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
    name = checked_name(document.get("name"), name, At("/name", problems))
    endpoint = checked_name(document.get("endpoint_name"), endpoint, At("/endpoint_name", problems))
    tags = {} if document.get("tags") is None else document["tags"]
    At("/tags", problems).is_of(tags, dict, "a mapping")
    description = "" if document.get("description") is None else document["description"]
    At("/description", problems).is_of(description, str, "a string")
    problems.check()
    document = {**document, "name": name, "endpoint_name": endpoint}
    if is_of_pipeline(document):
        slots = _slots(document, folder, names)
        inputs = {each: _placeholder(each, slot) for each, slot in slots.items()}
    else:
        slots, inputs = {}, {DATA: {"path": later_path(PLACE.format(DATA))}}
    reading = read_job(invoked(document, inputs=inputs), folder=folder, names=names)
    return DeploymentReading(
        name=name,
        endpoint=endpoint,
        description=description,
        tags={str(key): str(value) for key, value in tags.items()},
        reading=reading,
        slots=slots,
    )


def checked_name(document_name: object, expected_name: str, at: At) -> str:
    """The name in a document; one that isn't safe in a path and a URL, or isn't as expected, is a problem of its place.

    Args:
        document_name: None: the document has none, and the expected one counts.
        expected_name: empty: any.
    """
    name = document_name if document_name is not None else expected_name
    if not isinstance(name, str) or not re.fullmatch(PLAIN_NAME, name):
        at.wrong(f"must be {in_words(PLAIN_NAME)}" if name else "this field is required")
    elif expected_name and name != expected_name:
        problem = another_name(expected_name)
        at.wrong(problem.message, problem.hint)
    return str(name)


def _slots(document: Mapping[str, Any], folder: Path | None, names: Names | None) -> dict[str, Slot]:
    """Return the inputs of a pipeline that an invocation gives: data and texts. Numbers are those of the document.

    Raises:
        InvalidInput: with one problem for each input that neither has a value nor can be given one.
    """
    inputs = document.get("inputs")
    values = inputs if isinstance(inputs, dict) else {}
    slots, problems = {}, Problems()
    for name, declared in _declared_inputs(document, folder, names).items():
        default = values[name] if name in values else declared.get("path", declared.get("default"))
        if isinstance(default, dict):
            default = default.get("path")
        input_type = str(declared.get("type", "uri_folder"))
        if input_type in _DATA_TYPES or input_type == "string":
            slots[name] = Slot(type=input_type, default=None if default is None else str(default))
        elif default is None and not declared.get("optional"):
            message = f"the input {name!r} is of type {input_type}, which an invocation can't give"
            problems.wrong(f"/inputs/{name}", message, f"give it a value in the deployment: inputs: {{{name}: …}}")
    problems.check()
    return slots


def _declared_inputs(
    document: Mapping[str, Any], folder: Path | None, names: Names | None
) -> dict[str, dict[str, Any]]:
    """The inputs of the pipeline: those that its component declares, or that its job definition has."""
    field_name = "component" if document.get("component") else "job_definition"
    pipeline: dict[str, Any] = {}
    with suppress(InvalidInput):  # told by whoever reads it for its steps
        location = DocumentLocation(f"/{field_name}", folder)
        pipeline, _ = open_component(document.get(field_name), location, Findings(names=names))
    inputs = pipeline.get("inputs")
    inputs = inputs if isinstance(inputs, dict) else {}
    return {
        str(name): value if isinstance(value, dict) else {"type": _type_of(value), "default": value}
        for name, value in inputs.items()
    }


def _type_of(value: object) -> str:
    if isinstance(value, bool):
        return "boolean"
    return "string" if isinstance(value, str) else "number"


def _placeholder(name: str, slot: Slot) -> Any:
    """Return what stands in a job for this input."""
    text = PLACE.format(name)
    return {"path": later_path(text), "type": slot.type} if slot.is_data else text
