"""Deployments and invocations of the client, translated to the documents that users write."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from pydantic.alias_generators import to_camel

from parallelrun_api.azure.documents import in_snake_case, reference_of, resources_of, seconds_of
from parallelrun_api.azure.ids import shortened
from parallelrun_core.assets.site import DEFAULT_DATASTORE
from parallelrun_core.azure.findings import Note
from parallelrun_core.azure.invocation import SAME_IN_SPEC
from parallelrun_core.errors import InvalidInput

_ACTIONS: Final = {"appendrow": "append_row", "summaryonly": "summary_only"}
_SETTINGS: Final = (*SAME_IN_SPEC, "output_file_name", "environment_variables")
"""What a deployment has, and an invocation in its place; the client writes `outputFileName`."""
_OF_PIPELINES: Final = ("default_compute", "default_datastore", "continue_on_step_failure", "force_rerun")
"""The settings of a deployment of a pipeline, all of which the client sends as texts."""
_TRUTHS: Final = {"true": True, "false": False}
_READERS: Final[Mapping[str, Callable[[str], str]]] = {
    "output_action": lambda action: _ACTIONS.get(action.lower(), action),
    "logging_level": str.upper,
}
"""Settings that the client writes in its own words."""
_ONLY_KEYS: Final = ("UriFolder", "UriFile")
"""What the client calls the data if there is one input, which then has no name."""
_PLACING: Final = ("target", "instanceType", "location", "properties")
"""What an invocation may say of the compute beside the number of nodes."""
_OF_TYPES: Final = {"urifolder": "uri_folder", "urifile": "uri_file"}


def deployment_document(sent: Mapping[str, Any]) -> dict[str, Any]:
    """The document of a deployment that a client has sent.

    Raises:
        InvalidInput: it is none.
    """
    common = {"description": sent.get("description") or ""}
    configured = sent.get("deploymentConfiguration")
    if isinstance(configured, Mapping):
        component = configured.get("componentId")
        asset = component.get("assetId") if isinstance(component, Mapping) else component
        sent_settings = {key.rpartition(".")[2]: value for key, value in (configured.get("settings") or {}).items()}
        settings = {
            name: _TRUTHS.get(str(value).lower(), value)
            for name in _OF_PIPELINES
            if (value := sent_settings.get(name)) not in (None, "")
        }
        return {**common, "type": "pipeline", "component": reference_of(asset), "settings": settings}
    code, model, resources = (sent.get(name) for name in ("codeConfiguration", "model", "resources"))
    document = {
        **common,
        "type": "model",
        "model": reference_of(model.get("assetId")) if isinstance(model, Mapping) else None,
        "code_configuration": _code(code) if isinstance(code, Mapping) else None,
        "environment": reference_of(sent.get("environmentId")),
        "compute": shortened(str(sent["compute"])) if sent.get("compute") else None,
        "resources": resources_of(resources) if isinstance(resources, Mapping) else None,
        "settings": _settings(sent),
    }
    return {key: value for key, value in document.items() if value is not None}


def data_given(sent: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a client gives to an endpoint, in the words of an invocation.

    Raises:
        InvalidInput: it is no data.
    """
    data = sent.get("inputData") or {}
    if not isinstance(data, Mapping):
        raise InvalidInput.at("/properties/inputData", "it is a mapping")
    inputs = {name: _input_value(value) for name, value in data.items()}
    outputs = {name: _input_value(value) for name, value in (sent.get("outputData") or {}).items()}
    outputs_part: dict[str, Any] = {"outputs": outputs} if outputs else {}
    overrides = {**outputs_part, **_overrides(sent)}
    if len(inputs) == 1 and (only := next(iter(inputs))) in _ONLY_KEYS:
        return {**overrides, "input": inputs[only]}
    return {**overrides, "inputs": inputs} if inputs else overrides


def without_effect(sent: Mapping[str, Any]) -> tuple[Note, ...]:
    """Notes on what a client gives to an endpoint that changes nothing here: the kind of nodes is the deployment's."""
    compute = sent.get("compute")
    names = [name for name in _PLACING if compute.get(name)] if isinstance(compute, Mapping) else []
    message = "an invocation runs on the compute of its deployment, so this has no effect"
    return tuple(Note(f"/compute/{in_snake_case(name)}", message) for name in names)


def _overrides(sent: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a client gives to an endpoint in place of settings of the deployment."""
    names = ("compute", "properties", "outputDataset")
    compute, properties, place = (part if isinstance(part := sent.get(name), Mapping) else {} for name in names)
    settings = {**_settings(sent), "job_name": sent.get("name")}
    settings["instance_count"] = compute.get("instanceCount")
    settings["experiment_name"] = properties.get("experimentName")
    if place.get("path"):
        datastore = str(place.get("datastoreId") or DEFAULT_DATASTORE).rpartition("/")[2]
        settings["output_path"] = f"azureml://datastores/{datastore}/paths/{place['path']}"
    return {name: value for name, value in settings.items() if value is not None}


def _input_value(value: object) -> object:
    if not isinstance(value, Mapping):
        return value
    kind = str(value.get("jobInputType") or value.get("jobOutputType") or "")
    if kind.lower() == "literal":
        return value.get("value")
    type_name = _OF_TYPES.get(kind.lower(), kind)
    fields = {"path": value.get("uri"), "type": type_name or None}
    return {key: each for key, each in fields.items() if each is not None}


def _code(sent: Mapping[str, Any]) -> dict[str, Any]:
    return {"code": reference_of(sent.get("codeId")), "scoring_script": sent.get("scoringScript")}


def _settings(sent: Mapping[str, Any]) -> dict[str, Any]:
    sent_settings = {name: sent.get(to_camel(name)) for name in _SETTINGS}
    settings: dict[str, Any] = {
        name: read(str(value)) if (read := _READERS.get(name)) else value
        for name, value in sent_settings.items()
        if value not in (None, {}, "")
    }
    retry_settings = _retries(sent.get("retrySettings"))
    return settings if retry_settings is None else {**settings, "retry_settings": retry_settings}


def _retries(sent: object) -> dict[str, Any] | None:
    if not isinstance(sent, Mapping):
        return None
    timeout = sent.get("timeout")
    retry_settings = {"max_retries": sent.get("maxRetries"), "timeout": seconds_of(timeout) if timeout else None}
    return {key: value for key, value in retry_settings.items() if value is not None}
