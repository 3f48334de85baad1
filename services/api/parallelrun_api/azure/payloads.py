"""Jobs that no client has sent, or that are steps of pipelines, as a client would have sent them."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from parallelrun_api.azure.children import ChildStep
from parallelrun_api.azure.facade import Facade
from parallelrun_api.azure.ids import version_of, without_prefix
from parallelrun_api.azure.outputs import keys_by_name
from parallelrun_core.answers.jobs import Job
from parallelrun_core.errors import NotFound
from parallelrun_core.spec.expressions import only_expression, reference, step_reference

_TYPES: Final = frozenset({"uri_folder", "uri_file", "mltable", "custom_model", "mlflow_model", "triton_model"})
_NO_ENVIRONMENT: Final = "azureml:none:1"


def job_payload(facade: Facade, scope: str, job: Job, step: ChildStep | None) -> dict[str, Any]:
    """The properties of a job in the client's words. A parallel step is a pipeline of that step alone, as the client
    has no other word for it.

    Args:
        scope: the workspace, as ids begin.
        step: the step that the job is; None: it is none.
    """
    spec = job.spec
    texts = {"displayName": job.name, "description": spec.get("description"), "experimentName": spec.get("experiment")}
    common: dict[str, Any] = {key: value for key, value in texts.items() if value}
    compute = f"{scope}/computes/{spec['compute']}" if spec.get("compute") else step.compute if step else ""
    if compute:
        common["computeId"] = compute
    inputs, outputs = _inputs(job, step), _outputs(job, step)
    common |= {"tags": spec.get("tags"), "inputs": inputs, "outputs": outputs}
    kind = str(spec.get("type") or ("command" if spec.get("command") else "parallel"))
    if step is not None:
        common |= {
            "displayName": step.name if job.parent is None else job.name,
            "parentJobName": step.pipeline,
            "properties": {
                "azureml.runsource": "azureml.StepRun", "StepType": kind, "azureml.pipelinerunid": step.pipeline,
            },
        }  # fmt: skip
        if step.experiment:
            common["experimentName"] = step.experiment
    if kind == "command":
        environment = _environment(facade, step) or _NO_ENVIRONMENT
        return {"jobType": "Command", "command": spec["command"], "environmentId": environment, **common}
    nodes = {step.name: _node(step, inputs, outputs, compute)} if step is not None and step.node else {}
    return {"jobType": "Pipeline", "jobs": nodes if kind == "parallel" else {}, "settings": {}, **common}


def _inputs(job: Job, step: ChildStep | None) -> dict[str, Any]:
    return {name: _input(raw, _source(step, name)) for name, raw in _named(job, "inputs").items()}


def _input(raw_input: Mapping[str, Any], source: str) -> dict[str, Any]:
    if "path" not in raw_input:
        return {"jobInputType": "literal", "value": _text(raw_input.get("value"))}
    paths = raw_input["path"]
    path = source or (paths[0] if isinstance(paths, list | tuple) and paths else paths)
    return {"jobInputType": _type(raw_input.get("model") or raw_input.get("type")), "uri": str(path)}


def _source(step: ChildStep | None, name: str) -> str:
    """The place of a step's input as the client knows it: an output of another step, or what the pipeline was given."""
    raw_input = (step.node.get("inputs") or {}).get(name) if step is not None else None
    text = raw_input.get("value") or raw_input.get("uri") if isinstance(raw_input, Mapping) else raw_input
    if step is None or not isinstance(text, str):
        return ""
    expression = only_expression(text) or ""
    if (earlier := step_reference(expression)) is not None and earlier.step in step.jobs:
        return f"azureml://jobs/{step.jobs[earlier.step]}/outputs/{earlier.output}"
    bound = reference(expression)
    if bound is not None and bound.of_parent and bound.kind == "inputs":
        pipeline_input = (step.sent.get("inputs") or {}).get(bound.name)
        return str(pipeline_input.get("uri") or "") if isinstance(pipeline_input, Mapping) else ""
    return "" if "${{" in text else text


def _outputs(job: Job, step: ChildStep | None) -> dict[str, Any]:
    outputs = _named(job, "outputs")
    keys = {key: key for key in outputs}
    if step is not None and job.parent is None:
        keys = keys_by_name(step.sent, outputs, is_step=True)
    return {name: {"jobOutputType": _type(outputs[key].get("type"))} for name, key in keys.items()}


def _type(kind: object) -> object:
    return kind if kind in _TYPES else "uri_folder"


def _node(step: ChildStep, inputs: Mapping[str, Any], outputs: Mapping[str, Any], compute: str) -> dict[str, Any]:
    """The step by itself, with what its inputs are in place of where the pipeline has them from."""
    node = {
        **step.node,
        "inputs": {name: _in_snake_case(each) for name, each in inputs.items()},
        "outputs": {name: _in_snake_case(each) for name, each in outputs.items()},
    }
    return {**node, "computeId": compute} if compute else node


def _in_snake_case(fields: Mapping[str, Any]) -> dict[str, Any]:
    names = {"jobInputType": "job_input_type", "jobOutputType": "job_output_type"}
    return {names.get(key, key): value for key, value in fields.items()}


def _environment(facade: Facade, step: ChildStep | None) -> str:
    """The id of the environment that the step, or its component, has; empty: nobody has named one."""
    if step is None:
        return ""
    component = version_of(str(step.node.get("componentId") or ""))
    if component is not None:
        with suppress(NotFound):
            spec = facade.asset_store.get(*component)["properties"].get("componentSpec") or {}
            return without_prefix(str(spec.get("environment") or ""))
    return str(step.node.get("environmentId") or "")


def _named(job: Job, field: str) -> dict[str, Mapping[str, Any]]:
    return {name: each for name, each in (job.spec.get(field) or {}).items() if isinstance(each, Mapping)}


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
