"""Jobs of the client, translated to the document that a user would have written, which our reader reads.

Nothing is decided here: what is wrong with a document is told by its reader, by the place that it has there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from parallelrun_api.azure.answers import NotSupported
from parallelrun_api.azure.ids import shortened, without_prefix
from parallelrun_core.azure.v2_command import Command
from parallelrun_core.azure.v2_models import TYPES, Resources
from parallelrun_core.errors import InvalidInput
from parallelrun_core.names.assets import INCLUDES

_MODES: Final = {
    "readonlymount": "ro_mount", "readwritemount": "rw_mount", "download": "download", "upload": "upload",
    "direct": "direct", "evalmount": "eval_mount", "evaldownload": "eval_download",
}  # fmt: skip
_LITERAL: Final = "literal"
_IDENTITIES: Final = {"amltoken": "aml_token", "managed": "managed", "useridentity": "user_identity"}
_DURATION: Final = re.compile(r"P(?:(\d{1,9})D)?(?:T(?:(\d{1,9})H)?(?:(\d{1,9})M)?(?:(\d{1,9})(?:\.\d*)?S)?)?")
_CAPITAL: Final = re.compile("(?<=[a-z])[A-Z]")
_IDS: Final = {"componentId": "component", "computeId": "compute"}
"""Fields of a step that the client calls by other names than documents do."""
_GROUPS: Final = (
    "resources",
    "retry_settings",
    "limits",
    "distribution",
    "services",
    "queue_settings",
    "tags",
    "properties",
)
"""Fields of fields, in which the client sends null for what is not set."""
_DEFAULT_OUTPUT: Final = "default"
"""What the client sends as an output of each command; one of its user's is in the command."""
_DEFAULT_USED: Final = re.compile(r"\$\{\{\s*outputs\.default\s*\}\}", re.IGNORECASE)
_LOCAL: Final = "local"
_IS_LOCAL: Final = "IsLocal"
"""What the client sends among the properties of a command's resources in place of `compute: local`."""
_OF_LOCAL: Final = "AZUREML_COMPUTE_USE_COMMON_RUNTIME"
"""A variable that it adds to those of such a command."""
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
    document = _settings_of(spec)
    document.pop(INCLUDES, None)  # the client has put these files into the code that it has sent
    if isinstance(document.get("jobs"), dict):
        document["jobs"] = _nodes(document["jobs"], 0)
    return document


def _pipeline(sent: Mapping[str, Any]) -> dict[str, Any]:
    settings = {
        key: without_prefix(shortened(value)) if key.startswith("default_") and isinstance(value, str) else value
        for key, value in _mapping(sent.get("settings"), "settings").items()
        if not key.startswith("_") and value is not None
    }
    if sent.get("computeId"):
        settings.setdefault("default_compute", without_prefix(shortened(str(sent["computeId"]))))
    jobs = _mapping(sent.get("jobs"), "jobs")
    source = {"jobs": _nodes(jobs, 0)} if jobs else {"component": reference_of(sent.get("componentId"))}
    return {
        "type": "pipeline",
        **source,
        "settings": settings or None,
        "inputs": _inputs(sent.get("inputs")) or None,
        "outputs": _outputs(sent.get("outputs")) or None,
        "identity": _identity(sent.get("identity")),
    }


def _command(sent: Mapping[str, Any]) -> dict[str, Any]:
    outputs = _outputs(sent.get("outputs"))
    if not _DEFAULT_USED.search(str(sent.get("command"))):
        outputs.pop(_DEFAULT_OUTPUT, None)
    resources = _mapping(sent.get("resources"), "resources")
    limits = _mapping(sent.get("limits"), "limits")
    timeout = limits.get("timeout")
    distribution = sent.get("distribution")
    variables = dict(_mapping(sent.get("environmentVariables"), "environmentVariables"))
    compute = shortened(str(sent["computeId"])) if sent.get("computeId") else None
    if compute is None and _IS_LOCAL in _mapping(resources.get("properties"), "resources/properties"):
        compute = _LOCAL
        variables.pop(_OF_LOCAL, None)
    # What is added to the fields of a command needs nothing here, unless the client has another form of it.
    fields = {name: value for name in Command.__annotations__ if (value := sent.get(in_camel_case(name)))}
    return {
        **fields,
        "type": "command",
        "component": reference_of(sent.get("componentId")),
        "command": sent.get("command"),
        "code": reference_of(sent.get("codeId")),
        "environment": reference_of(sent.get("environmentId")),
        "environment_variables": variables or None,
        "compute": compute,
        "inputs": {name: _not_a_type(value) for name, value in _inputs(sent.get("inputs")).items()} or None,
        "outputs": outputs or None,
        "resources": resources_of(resources),
        "limits": {"timeout": seconds_of(timeout)} if timeout else None,
        "distribution": _distribution(distribution) if isinstance(distribution, Mapping) else None,
        "identity": _identity(sent.get("identity")),
    }


def resources_of(sent: Mapping[str, Any]) -> dict[str, Any] | None:
    """The resources that a client asks for, with the names that documents have for them; None: it asks for none."""
    properties = _mapping(sent.get("properties"), "resources/properties")
    fields = {
        **sent,
        "properties": {name: value for name, value in properties.items() if name != _IS_LOCAL},
        "dockerArgs": sent.get("dockerArgs") or sent.get("dockerArgsList"),
    }
    return {name: value for name in Resources.model_fields if (value := fields.get(in_camel_case(name)))} or None


def _not_a_type(value: object) -> object:
    """An input of a job. A text that is also the name of a type is written so that it stays a text."""
    return {"type": "string", "value": value} if isinstance(value, str) and value in TYPES else value


# Steps


def _nodes(nodes: Mapping[str, Any], depth: int) -> dict[str, Any]:
    if depth > _MAX_DEPTH:
        raise InvalidInput.at("/properties/jobs", f"pipelines are nested more than {_MAX_DEPTH} deep")
    return {name: _node(_mapping(node, f"jobs/{name}"), depth) for name, node in nodes.items()}


def _node(node: Mapping[str, Any], depth: int) -> dict[str, Any]:
    fields = _settings_of({key: value for key, value in node.items() if key != "name"})
    for theirs, ours in _IDS.items():
        if isinstance(named := fields.pop(theirs, None), str):
            fields[ours] = reference_of(named)
    for name in ("compute", "environment"):
        if isinstance(fields.get(name), str):
            fields[name] = shortened(fields[name])
    if isinstance(fields.get("jobs"), Mapping):
        fields["jobs"] = _nodes(fields["jobs"], depth + 1)
    for name, read in (("inputs", _inputs), ("outputs", _outputs)):
        if name in fields:
            fields[name] = read(fields[name])
            if not fields[name]:
                del fields[name]
    if isinstance(fields.get("identity"), Mapping):
        fields["identity"] = _identity(fields["identity"])
    return fields


def _settings_of(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a step or a component that its author has set, as documents have them."""
    settings = {key: value for key, value in fields.items() if not key.startswith("_") and value is not None}
    for name in _GROUPS:
        if isinstance(group := settings.get(name), Mapping):
            read = str if name in ("tags", "properties", "services") else in_snake_case
            settings[name] = {read(key): value for key, value in group.items() if value not in (None, {})}
            if not settings[name]:
                del settings[name]
    if (size := settings.get("mini_batch_size")) is not None and not isinstance(size, bool | dict):
        # The client sends 0 where none is set.
        settings["mini_batch_size"] = str(size)
        if settings["mini_batch_size"] == "0":
            del settings["mini_batch_size"]
    if isinstance(keys := settings.get("partition_keys"), str):
        settings["partition_keys"] = _list_in(keys)
    if isinstance(distribution := settings.get("distribution"), Mapping):
        settings["distribution"] = _distribution(distribution)
    if isinstance(limits := settings.get("limits"), Mapping):
        settings["limits"] = _limits(limits)
    return settings


def _limits(raw_limits: Mapping[str, Any]) -> dict[str, Any]:
    limits = {key: value for key, value in raw_limits.items() if key != "job_limits_type"}
    timeout = limits.get("timeout")
    if isinstance(timeout, str) and timeout.startswith("P"):
        limits["timeout"] = seconds_of(timeout)
    return limits


def _list_in(text: str) -> object:
    """The list that is written in a text as JSON; the text, if it is none."""
    try:
        names = json.loads(text)
    except ValueError:
        return text
    return names if isinstance(names, list) else text


# Inputs and outputs


def _inputs(raw_inputs: object) -> dict[str, Any]:
    inputs = {name: _input(each, name) for name, each in _mapping(raw_inputs, "inputs").items()}
    return {name: each for name, each in inputs.items() if each is not None}


def _input(raw_input: object, name: str) -> object:
    if not isinstance(raw_input, Mapping):
        return raw_input
    kind = str(raw_input.get("jobInputType") or raw_input.get("job_input_type") or raw_input.get("type") or "")
    if kind == _LITERAL or (not kind and "value" in raw_input):
        return raw_input.get("value")
    path = raw_input.get("uri") or raw_input.get("path")
    if path is None:
        return None
    fields = {"type": kind or None, "path": path, "mode": _mode(raw_input.get("mode"))}
    return {key: value for key, value in fields.items() if value is not None}


def _outputs(raw_outputs: object) -> dict[str, Any]:
    return {name: _output(each) for name, each in _mapping(raw_outputs, "outputs").items()}


def _output(raw_output: object) -> object:
    if not isinstance(raw_output, Mapping):
        return raw_output
    kind = str(raw_output.get("jobOutputType") or raw_output.get("job_output_type") or raw_output.get("type") or "")
    value = raw_output.get("value")
    if kind == _LITERAL or value is not None:
        mode = _mode(raw_output.get("mode"))
        return value if mode is None else {"path": value, "mode": mode}
    fields = {
        "type": kind or None,
        "path": raw_output.get("uri") or raw_output.get("path"),
        "mode": _mode(raw_output.get("mode")),
        "name": raw_output.get("assetName") or raw_output.get("name"),
        "version": raw_output.get("assetVersion") or raw_output.get("version"),
    }
    return {key: text for key, text in fields.items() if text is not None}


def _mode(mode: object) -> str | None:
    text = str(mode) if mode else ""
    return _MODES.get(text.lower(), text) or None


# Small parts


def _mapping(value: object, where: str) -> Mapping[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise InvalidInput.at(f"/properties/{where}", "it is a mapping")
    return value


def reference_of(asset_id: object) -> str | None:
    """An asset as a document names it, which a client names by its id or by its short name; None: it names none."""
    if not isinstance(asset_id, str) or not asset_id:
        return None
    return f"azureml:{asset_id}" if asset_id.startswith("/") else asset_id


def _identity(identity: object) -> dict[str, Any] | None:
    if not isinstance(identity, Mapping):
        return None
    fields = {in_snake_case(key): value for key, value in identity.items() if value is not None}
    kind = str(fields.pop("identity_type", None) or fields.get("type") or "")
    return {**fields, "type": _IDENTITIES.get(kind.replace("_", "").lower(), kind)}


def _distribution(distribution: Mapping[str, Any]) -> dict[str, Any]:
    """A distribution with the names that documents have for its fields; the client has two kinds of them."""
    fields = {in_snake_case(key): value for key, value in distribution.items() if value is not None}
    kind = fields.pop("distribution_type", None) or fields.get("type") or ""
    return {**fields, "type": str(kind).lower()}


def in_snake_case(name: str) -> str:
    return _CAPITAL.sub(lambda capital: f"_{capital[0].lower()}", name)


def in_camel_case(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(part.capitalize() for part in others)


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
