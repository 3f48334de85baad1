"""From the job that the client sends to the document that a user would have written, which our reader reads.

Nothing is decided here: what is wrong with a document is told by its reader, by the place that it has there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from parallelrun_api.azure.answers import NotSupported
from parallelrun_api.azure.ids import shortened, without_prefix
from parallelrun_core.errors import InvalidInput

_MODES: Final = {
    "readonlymount": "ro_mount", "readwritemount": "rw_mount", "download": "download", "upload": "upload",
    "direct": "direct", "evalmount": "eval_mount", "evaldownload": "eval_download",
}  # fmt: skip
_LITERAL: Final = "literal"
_IDENTITIES: Final = {"amltoken": "aml_token", "managed": "managed", "useridentity": "user_identity"}
_DURATION: Final = re.compile(r"P(?:(\d{1,9})D)?(?:T(?:(\d{1,9})H)?(?:(\d{1,9})M)?(?:(\d{1,9})(?:\.\d*)?S)?)?")
_DEFAULT_OUTPUT: Final = "default"
_MAX_DEPTH: Final = 12
_LABELS: Final = {"displayName": "display_name", "experimentName": "experiment_name", "description": "description"}


def document_of(sent: Mapping[str, Any]) -> dict[str, Any]:
    """The document of a job that a client has sent.

    Args:
        sent: its properties.

    Raises:
        NotSupported: jobs of this type are out of reach.
        InvalidInput: it is no job.
    """
    kind = str(sent.get("jobType", ""))
    readers: dict[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {"Pipeline": _pipeline, "Command": _command}
    if kind not in readers:
        hint = "pipelines of command and parallel steps, and commands, are supported"
        raise NotSupported(f"A job of type {kind[:40]!r} can't be run here: {hint}.")
    labels = {ours: sent[theirs] for theirs, ours in _LABELS.items() if sent.get(theirs)}
    tags = {str(key): str(value) for key, value in _mapping(sent.get("tags"), "tags").items()}
    document = {**labels, **({"tags": tags} if tags else {}), **readers[kind](sent)}
    return {key: value for key, value in document.items() if value is not None}


def component_document(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The document of a component that a client has sent."""
    document = {key: value for key, value in spec.items() if not key.startswith("_") and value is not None}
    if isinstance(document.get("jobs"), dict):
        document["jobs"] = _nodes(document["jobs"], 0)
    return document


def _pipeline(sent: Mapping[str, Any]) -> dict[str, Any]:
    settings = {
        key: without_prefix(shortened(value)) if key.startswith("default_") and isinstance(value, str) else value
        for key, value in _mapping(sent.get("settings"), "settings").items()
        if not key.startswith("_") and value is not None
    }
    if settings.get("default_compute") == "serverless":
        settings["default_compute"] = "local"
    if sent.get("computeId"):
        settings.setdefault("default_compute", without_prefix(shortened(str(sent["computeId"]))))
    jobs = _mapping(sent.get("jobs"), "jobs")
    source = {"jobs": _nodes(jobs, 0)} if jobs else {"component": _id(sent.get("componentId"))}
    return {
        "type": "pipeline",
        **source,
        "settings": settings or None,
        "inputs": _inputs(sent.get("inputs")) or None,
        "outputs": _outputs(sent.get("outputs")) or None,
        "identity": _identity(sent.get("identity")),
    }


def _command(sent: Mapping[str, Any]) -> dict[str, Any]:
    outputs = {name: given for name, given in _outputs(sent.get("outputs")).items() if name != _DEFAULT_OUTPUT}
    resources = _mapping(sent.get("resources"), "resources")
    count = resources.get("instanceCount")
    limits = _mapping(sent.get("limits"), "limits")
    timeout = limits.get("timeout")
    distribution = sent.get("distribution")
    return {
        "type": "command",
        "command": sent.get("command"),
        "code": _id(sent.get("codeId")),
        "environment": _id(sent.get("environmentId")),
        "environment_variables": sent.get("environmentVariables") or None,
        "compute": shortened(str(sent["computeId"])) if sent.get("computeId") else None,
        "inputs": _inputs(sent.get("inputs")) or None,
        "outputs": outputs or None,
        "resources": {"instance_count": count} if count else None,
        "limits": {"timeout": seconds_of(timeout)} if timeout else None,
        "distribution": _distribution(distribution) if isinstance(distribution, Mapping) else None,
        "identity": _identity(sent.get("identity")),
    }


# Steps


def _nodes(nodes: Mapping[str, Any], depth: int) -> dict[str, Any]:
    if depth > _MAX_DEPTH:
        raise InvalidInput.at("/properties/jobs", f"pipelines are nested more than {_MAX_DEPTH} deep")
    return {name: _node(_mapping(node, f"jobs/{name}"), depth) for name, node in nodes.items()}


def _node(node: Mapping[str, Any], depth: int) -> dict[str, Any]:
    fields = {key: value for key, value in node.items() if not key.startswith("_") and value is not None}
    fields.pop("name", None)
    component = fields.pop("componentId", None)
    if isinstance(component, str):
        fields["component"] = _id(component)
    for name in ("compute", "environment"):
        if isinstance(fields.get(name), str):
            fields[name] = shortened(fields[name])
    if isinstance(fields.get("compute"), str) and without_prefix(fields["compute"]) == "serverless":
        del fields["compute"]
    if isinstance(fields.get("mini_batch_size"), int):
        fields["mini_batch_size"] = str(fields["mini_batch_size"])
    if isinstance(fields.get("jobs"), Mapping):
        fields["jobs"] = _nodes(fields["jobs"], depth + 1)
    for name, read in (("inputs", _inputs), ("outputs", _outputs)):
        if name in fields:
            fields[name] = read(fields[name])
            if not fields[name]:
                del fields[name]
    if isinstance(fields.get("identity"), Mapping):
        fields["identity"] = _identity(fields["identity"])
    if isinstance(fields.get("resources"), Mapping):
        fields["resources"] = {key: value for key, value in fields["resources"].items() if value not in (None, {})}
    return fields


# Inputs and outputs


def _inputs(given: object) -> dict[str, Any]:
    inputs = {name: _input(each, name) for name, each in _mapping(given, "inputs").items()}
    return {name: each for name, each in inputs.items() if each is not None}


def _input(given: object, name: str) -> object:
    if not isinstance(given, Mapping):
        return given
    kind = str(given.get("jobInputType") or given.get("job_input_type") or given.get("type") or "")
    if kind == _LITERAL or (not kind and "value" in given):
        return given.get("value")
    path = given.get("uri") or given.get("path")
    if path is None:
        return None
    fields = {"type": kind or None, "path": path, "mode": _mode(given.get("mode"))}
    return {key: value for key, value in fields.items() if value is not None}


def _outputs(given: object) -> dict[str, Any]:
    return {name: _output(each) for name, each in _mapping(given, "outputs").items()}


def _output(given: object) -> object:
    if not isinstance(given, Mapping):
        return given
    kind = str(given.get("jobOutputType") or given.get("job_output_type") or given.get("type") or "")
    value = given.get("value")
    if kind == _LITERAL or value is not None:
        mode = _mode(given.get("mode"))
        return value if mode is None else {"path": value, "mode": mode}
    fields = {
        "type": kind or None,
        "path": given.get("uri") or given.get("path"),
        "mode": _mode(given.get("mode")),
        "name": given.get("assetName") or given.get("name"),
        "version": given.get("assetVersion") or given.get("version"),
    }
    return {key: text for key, text in fields.items() if text is not None}


def _mode(given: object) -> str | None:
    text = str(given) if given else ""
    return _MODES.get(text.lower(), text) or None


# Small parts


def _mapping(given: object, where: str) -> Mapping[str, Any]:
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise InvalidInput.at(f"/properties/{where}", "it is a mapping")
    return given


def _id(given: object) -> str | None:
    """An id, as documents name it."""
    if not isinstance(given, str) or not given:
        return None
    return f"azureml:{given}" if given.startswith("/") else given


def _identity(given: object) -> dict[str, Any] | None:
    if not isinstance(given, Mapping):
        return None
    kind = str(given.get("identityType") or given.get("type") or "")
    return {"type": _IDENTITIES.get(kind.lower(), kind)}


def _distribution(given: Mapping[str, Any]) -> dict[str, Any]:
    kind = str(given.get("distributionType") or given.get("type") or "").lower()
    count = given.get("processCountPerInstance") or given.get("process_count_per_instance")
    return {"type": kind, **({"process_count_per_instance": count} if count else {})}


def seconds_of(text: object) -> int:
    """A duration of ISO 8601, such as PT1H, in seconds.

    Raises:
        InvalidInput: it is none.
    """
    match = _DURATION.fullmatch(str(text))
    if match is None or not any(match.groups()):
        raise InvalidInput.at("/properties/limits/timeout", f"{str(text)[:80]!r} is not a duration, such as PT1H")
    days, hours, minutes, seconds = (int(each or 0) for each in match.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds
