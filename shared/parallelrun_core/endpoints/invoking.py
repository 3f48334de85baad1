"""A deployment and what an invocation gives become the document of a job."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pydantic import Field

from parallelrun_core.azure.findings import DocumentLocation, Findings
from parallelrun_core.azure.invocation import DATA, MODEL, SAME_IN_SPEC
from parallelrun_core.azure.named import named_input
from parallelrun_core.described import Strict
from parallelrun_core.endpoints.records import PLACE, Deployment
from parallelrun_core.errors import InvalidInput
from parallelrun_core.names.assets import Names
from parallelrun_core.problems import Problems, validated
from parallelrun_core.spec.pipeline_steps import later_path
from parallelrun_core.spec.problems import problem_of

_OF_BOTH: Final = frozenset(
    {"deployment_name", "input", "inputs", "outputs", "job_name", "experiment_name", "tags", "input_type"}
)


class RetrySettings(Strict):
    """Retry settings in the form of a deployment."""

    max_retries: int | None = Field(default=None, ge=0)
    timeout: float | None = Field(default=None, gt=0)
    """Seconds that a mini-batch may take."""


class Invocation(Strict):
    """An invocation of an endpoint: data, and settings that differ from the deployment's."""

    deployment_name: str = ""
    """By default, the endpoint's default deployment."""
    input: str | dict[str, Any] | None = None
    """The data, if there is one input: a path, a URL, a place in a datastore, a data asset; or a mapping with `path`
    and `type`."""
    input_type: str | None = None
    """The type of `input`: `uri_folder`, `uri_file` or `mltable`."""
    inputs: dict[str, Any] = Field(default_factory=dict)
    """The inputs by name; of a pipeline also texts."""
    outputs: dict[str, Any] = Field(default_factory=dict)
    """The locations of outputs by name: a path, or a mapping with `path` and `type`. A model has one: a folder, or the
    file with its rows if its type is `uri_file`."""
    output_path: str | None = None
    """The folder of the output of a model."""
    output_file_name: str | None = None
    mini_batch_size: int | str | None = None
    instance_count: int | None = None
    max_concurrency_per_instance: int | None = None
    output_action: str | None = None
    error_threshold: int | None = None
    logging_level: str | None = None
    retry_settings: RetrySettings | None = None
    environment_variables: dict[str, str] = Field(default_factory=dict)
    """Beside those of the deployment."""
    job_name: str | None = None
    """A label for people."""
    experiment_name: str | None = None
    """Has no effect."""
    tags: dict[str, str] | None = None


def read_invocation(document: object) -> Invocation:
    """The invocation that a document describes.

    Raises:
        InvalidInput: with one problem for each wrong field.
    """
    if not isinstance(document, dict):
        raise InvalidInput.at("", "an invocation is a mapping", "{input: PATH}")
    invocation = validated(Invocation, document, problem_of=problem_of)
    if invocation.input is not None and invocation.inputs:
        raise InvalidInput.at("/input", "inputs are given, too", "leave one of them out")
    return invocation


def job_document(deployment: Deployment, invocation: Invocation, *, names: Names | None = None) -> dict[str, Any]:
    """The document of the job that an invocation makes.

    Args:
        names: where names of assets and of datastores are looked up for a pipeline. Those of a model stay names.

    Raises:
        InvalidInput: with one problem for each thing that this deployment can't take.
    """
    document = (
        _of_pipeline(deployment, invocation, Findings(names=names))
        if deployment.type == "pipeline"
        else _of_model(deployment, invocation)
    )
    if invocation.job_name:
        document["name"] = invocation.job_name
    if invocation.tags:
        document["tags"] = {**deployment.job.get("tags", {}), **invocation.tags}
    return document


def _of_model(deployment: Deployment, invocation: Invocation) -> dict[str, Any]:
    job = deployment.job
    data = {name: _as_input(value) for name, value in (invocation.inputs or _single(invocation)).items()}
    problems = Problems()
    if not data:
        problems.wrong("/input", "an invocation gives the data", "a path, a URL, or a data asset")
    if MODEL in data:
        problems.wrong(f"/inputs/{MODEL}", f"{MODEL!r} is the deployment's own model", f"call the data {DATA!r}")
    if len(invocation.outputs) > 1:
        problems.wrong("/outputs", "a deployment of a model has one output", "leave the others out")
    problems.check()
    model_inputs = {name: value for name, value in job.get("inputs", {}).items() if name == MODEL}
    document = {**job, "inputs": {**model_inputs, **data}, "input_data": list(data)}
    settings = {name: getattr(invocation, name) for name in (*SAME_IN_SPEC, "instance_count")}
    document |= {name: value for name, value in settings.items() if value is not None}
    folder, file_name = _place_of_rows(invocation)
    if folder:
        document["output"] = folder
    if file_name:
        document["append_row_file_name"] = file_name
    retries = invocation.retry_settings or RetrySettings()
    if retries.max_retries is not None:
        document["run_max_try"] = retries.max_retries + 1
    if retries.timeout is not None:
        document["run_invocation_timeout"] = retries.timeout
    if invocation.environment_variables:
        document["environment_variables"] = {**job.get("environment_variables", {}), **invocation.environment_variables}
    return document


def _place_of_rows(invocation: Invocation) -> tuple[str, str]:
    """The folder of a model's output, and the file with its rows; empty: as the deployment says."""
    output = next((_as_input(value) for value in invocation.outputs.values()), {})
    folder, file_name = str(output.get("path") or ""), ""
    if output.get("type") == "uri_file":
        folder, _, file_name = folder.rpartition("/")
    return invocation.output_path or folder, invocation.output_file_name or file_name


def _of_pipeline(deployment: Deployment, invocation: Invocation, problems: Findings) -> dict[str, Any]:
    for name in sorted(invocation.model_fields_set - _OF_BOTH):
        problems.wrong(f"/{name}", "this has no meaning for a deployment of a pipeline", "its steps have settings")
    inputs = invocation.inputs
    if invocation.input is not None:
        data = [name for name, slot in deployment.slots.items() if slot.is_data]
        if len(data) != 1:
            problems.wrong("/input", f"this pipeline has {len(data)} inputs that are data", "use inputs: {NAME: …}")
        inputs = dict.fromkeys(data, _single(invocation)[DATA])
    for name in sorted(set(inputs) - set(deployment.slots)):
        slot_names = ", ".join(deployment.slots) or "none"
        problems.wrong(f"/inputs/{name}", "an invocation can't give this input", f"it can give {slot_names}")
    texts: dict[str, str] = {}
    for name, slot in deployment.slots.items():
        value = inputs.get(name, slot.default)
        value = _as_input(value).get("path") if slot.is_data and value is not None else value
        if value is None:
            problems.wrong(f"/inputs/{name}", "this input is required", f"its type is {slot.type}")
        elif not isinstance(value, str | int | float):
            problems.wrong(f"/inputs/{name}", f"must be of type {slot.type}")
        else:
            if slot.is_data:
                value = _location(str(value), slot.type, DocumentLocation(f"/inputs/{name}", None), problems)
                texts[later_path(PLACE.format(name))] = value
            texts[PLACE.format(name)] = str(value)
    outputs = dict(deployment.job.get("outputs", {}))
    for name, value in invocation.outputs.items():
        if name not in outputs:
            problems.wrong(f"/outputs/{name}", "the pipeline has no such output", ", ".join(outputs) or "it has none")
        else:
            place = problems.place(str(_as_input(value).get("path")), f"/outputs/{name}", is_output=True)
            outputs[name] = {**outputs[name], "path": place}
    problems.check()
    filled: dict[str, Any] = _filled({**deployment.job, "outputs": outputs}, texts)
    return filled


def _location(text: str, kind: str, location: DocumentLocation, findings: Findings) -> str:
    """The location that a name of an asset or a place in a datastore stands for."""
    text = findings.place(text, location.pointer)
    return str((named_input(text, kind, location, findings) or {"path": text}).get("path"))


def _single(invocation: Invocation) -> dict[str, Any]:
    if invocation.input is None:
        return {}
    value = _as_input(invocation.input)
    return {DATA: {**value, "type": invocation.input_type} if invocation.input_type else value}


def _as_input(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {"path": value}


def _filled(part: Any, texts: Mapping[str, str]) -> Any:
    match part:
        case dict():
            return {key: _filled(value, texts) for key, value in part.items()}
        case list() | tuple():
            return [_filled(value, texts) for value in part]
        case str():
            for placeholder, text in texts.items():
                part = part.replace(placeholder, text)
    return part
