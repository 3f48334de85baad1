"""A batch deployment becomes a job: its scoring script runs as a parallel job over the data given (reference §3.9).

A deployment has no data of its own. Whoever runs one adds what an invocation gives, under the names that invocations
use (`invoked`), or writes it into the document:

    endpoint_name: iris
    type: model                 # or pipeline, with a component
    model: {path: ./model}
    code_configuration: {code: ./src, scoring_script: score.py}
    inputs: {data: {path: ./data}}        # ours: an invocation's
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import Field, StrictInt, StrictStr, field_validator

from parallelrun_core.azure import bindings, output_bindings
from parallelrun_core.azure.draft import Draft
from parallelrun_core.azure.environment import read_environment, read_file
from parallelrun_core.azure.findings import DocumentLocation, Findings, as_mapping, quoted
from parallelrun_core.azure.invocation import DATA, MODEL, SAME_IN_SPEC
from parallelrun_core.azure.named import named_code
from parallelrun_core.azure.part import DocumentPart, Label, Labelled
from parallelrun_core.azure.scope import PipelineScope
from parallelrun_core.azure.v2_models import MODEL_TYPES, Count, FileName, Resources, Threshold, V2RetrySettings
from parallelrun_core.azure.v2_reader import note_compute, note_placing
from parallelrun_core.azure.v2_step import StepReader
from parallelrun_core.errors import InvalidInput
from parallelrun_core.names.assets import UnknownAsset, reference_of
from parallelrun_core.spec.fields import checked_size
from parallelrun_core.storage.location import LOCAL, location_of

_ONLINE: Final = ("liveness_probe", "readiness_probe", "instance_type", "request_settings", "scale_settings")
_DEFAULTS: Final = {"max_concurrency_per_instance": 1, "mini_batch_size": 10}
_MLFLOW: Final = "mlflow_model"
_SCORING: Final = Path(__file__).parent / "mlflow_scoring" / "score_mlflow_model.py"
_OUTPUT_FILE: Final = "predictions.csv"
_RETRIES: Final = 3
_TIMEOUT_S: Final = 30


class CodeConfiguration(DocumentPart):
    code: StrictStr | None = None
    scoring_script: Annotated[StrictStr, Field(min_length=1)]


class DeploymentSettings(DocumentPart):
    """The fields below `settings`, or in earlier documents beside it."""

    max_concurrency_per_instance: Count | None = None
    mini_batch_size: StrictInt | StrictStr | None = None
    output_action: Literal["append_row", "summary_only"] | None = None
    output_file_name: FileName | None = None
    retry_settings: dict[str, Any] | None = None
    error_threshold: Threshold | None = None
    logging_level: Literal["DEBUG", "INFO", "WARNING"] | None = None
    environment_variables: dict[str, StrictStr] | None = None

    @field_validator("output_action", mode="before")
    @classmethod
    def _any_spelling(cls, value: object) -> object:
        spellings = {"appendrow": "append_row", "summaryonly": "summary_only"}
        return spellings.get(value.lower().replace("_", ""), value) if isinstance(value, str) else value

    @field_validator("logging_level", mode="before")
    @classmethod
    def _any_case(cls, value: object) -> object:
        return value.upper() if isinstance(value, str) else value

    _is_a_size = field_validator("mini_batch_size")(checked_size)


class DeploymentDocument(DeploymentSettings, Labelled):
    endpoint_name: Label = None
    model: Any = None
    code_configuration: dict[str, Any] | None = None
    environment: Any = None
    compute: StrictStr | None = None
    resources: dict[str, Any] | None = None
    settings: dict[str, Any] | None = None


class PipelineDeployment(Labelled):
    endpoint_name: Label = None
    component: Any = None
    job_definition: Any = None
    settings: dict[str, Any] | None = None


def pipeline_of(
    document: Mapping[str, Any], location: DocumentLocation, findings: Findings
) -> tuple[dict[str, Any], DocumentLocation]:
    """The pipeline job that a deployment of a pipeline is, with the inputs of an invocation, and its location."""
    deployment = findings.validate(PipelineDeployment, document, location.pointer)
    if deployment is None or (deployment.component is None) == (deployment.job_definition is None):
        if deployment is not None:
            findings.wrong(
                location.at("component"),
                "set either component or job_definition",
                "a file, or as a component azureml:…",
            )
        findings.check()
        raise AssertionError
    pipeline: dict[str, Any] = {"component": deployment.component}
    if deployment.job_definition is not None:
        pipeline, location = _job_definition(deployment.job_definition, location, findings)
    pipeline = {
        "display_name": deployment.name or deployment.endpoint_name,
        "description": deployment.description,
        **pipeline,
    }
    settings = {
        **as_mapping(pipeline.get("settings"), location.at("settings"), findings),
        **(deployment.settings or {}),
    }
    inputs = as_mapping(pipeline.get("inputs"), location.at("inputs"), findings)
    outputs = as_mapping(pipeline.get("outputs"), location.at("outputs"), findings)
    tags = as_mapping(pipeline.get("tags"), location.at("tags"), findings)
    return {
        **{name: value for name, value in pipeline.items() if value is not None},
        "type": "pipeline",
        "tags": {**(deployment.tags or {}), **tags},
        "settings": {"default_compute": "azureml:local", **settings},
        "inputs": {**inputs, **(deployment.inputs or {})},
        "outputs": {**outputs, **(deployment.outputs or {})},
    }, location


def _job_definition(
    value: Any, location: DocumentLocation, findings: Findings
) -> tuple[dict[str, Any], DocumentLocation]:
    """The pipeline job that a deployment names, and its location: its relative paths start from its own folder."""
    where = location.below("job_definition")
    if isinstance(value, str) and location_of(value).kind != LOCAL:
        message = f"{value!r}: a job that there is can't be deployed"
        findings.wrong(where.pointer, message, "the file of its pipeline, or the pipeline itself")
    elif isinstance(value, str):
        beside = Path(location.absolute(value)).parent if location.folder is not None else None
        value = read_file(value, where, findings)
        where = DocumentLocation(where.pointer, beside)
    findings.check()
    return dict(as_mapping(value, where.pointer, findings)), where


def read_deployment(document: Mapping[str, Any], location: DocumentLocation, findings: Findings) -> Draft:
    """The job that a deployment of a model is, with the data of an invocation."""
    reader = StepReader(findings, default=location.pointer)
    _refuse_others(document, location, findings)
    deployment = findings.validate(DeploymentDocument, document, location.pointer)
    if deployment is None:
        return reader.draft
    reader.put_labels(deployment.name or deployment.endpoint_name, deployment.description, deployment.tags, location)
    draft = reader.draft
    _put_settings(deployment, location, draft, findings)
    _put_script(deployment, location, draft, findings)
    _put_data(deployment, location, draft, findings)
    note_compute({"compute": deployment.compute}, location, findings)
    draft.put("compute", deployment.compute, location.at("compute"))
    return draft


def _refuse_others(document: Mapping[str, Any], location: DocumentLocation, findings: Findings) -> None:
    """Refuse what has no job in it: endpoints, and deployments that answer requests one by one."""
    schema = str(document.get("$schema", "")).lower()
    if "auth_mode" in document or schema.endswith("endpoint.schema.json"):
        hint = "run the file of its deployment, with --input DATA"
        findings.wrong(location.pointer, "an endpoint has nothing to run", hint)
    elif "online" in schema or any(name in document for name in _ONLINE):
        findings.wrong(location.pointer, "an online deployment answers requests; only batch deployments can be run")
    findings.check()


def _put_settings(deployment: DeploymentDocument, location: DocumentLocation, draft: Draft, findings: Findings) -> None:
    below = location.below("settings")
    newer = findings.validate(DeploymentSettings, deployment.settings or {}, below.pointer) or DeploymentSettings()
    for name in SAME_IN_SPEC:
        value, pointer = _either(name, newer, deployment, location)
        draft.put(name, value if value is not None else _DEFAULTS.get(name), pointer)
    name, pointer = _either("output_file_name", newer, deployment, location)
    draft.put("append_row_file_name", name or _OUTPUT_FILE, pointer)
    raw, pointer = _either("retry_settings", newer, deployment, location)
    retries = findings.validate(V2RetrySettings, raw or {}, pointer) or V2RetrySettings()
    tries = _RETRIES if retries.max_retries is None else retries.max_retries
    draft.put("run_max_try", tries + 1, f"{pointer}/max_retries")
    draft.put("run_invocation_timeout", retries.timeout or _TIMEOUT_S, f"{pointer}/timeout")
    resources = location.below("resources")
    requested = findings.validate(Resources, deployment.resources or {}, resources.pointer) or Resources()
    draft.put("instance_count", requested.instance_count or 1, resources.at("instance_count"))
    note_placing({name: value for name, value in requested if name != "instance_count"}, resources, findings)


def _either(
    name: str, newer: DeploymentSettings, older: DeploymentSettings, location: DocumentLocation
) -> tuple[Any, str]:
    """A setting, from below `settings` or from beside it, and where it is."""
    value = getattr(newer, name)
    if value is not None:
        return value, location.at("settings", name)
    return getattr(older, name), location.at(name)


def _put_script(deployment: DeploymentDocument, location: DocumentLocation, draft: Draft, findings: Findings) -> None:
    where = location.below("code_configuration")
    if deployment.code_configuration is not None:
        code = findings.validate(CodeConfiguration, deployment.code_configuration, where.pointer)
        if code is not None:
            named = named_code(code.code or "", where.below("code"), findings)
            draft.put("code", named or where.absolute(code.code or "."), where.at("code"))
            draft.put("entry_script", code.scoring_script, where.at("scoring_script"))
    elif str(_model(deployment, findings)["type"]).lower() == _MLFLOW:
        draft.put("code", str(_SCORING.parent), where.pointer)
        draft.put("entry_script", _SCORING.name, where.pointer)
        draft.put("append_row_separator", ",", where.pointer)
        findings.note(where.pointer, "an MLflow model without a scoring script: rows of CSV, Parquet and JSON lines")
        if deployment.environment is None:
            message = "none is made of the model's conda.yaml: the Python of the node must have mlflow"
            findings.note(location.at("environment"), f"{message}, or set environment: {{conda_file: …/conda.yaml}}")
    else:
        hint = "code_configuration: {code: ./src, scoring_script: score.py}, or model: {type: mlflow_model, …}"
        findings.wrong(where.pointer, "a deployment needs a scoring script, unless it is of an MLflow model", hint)
    environment: dict[str, Any] = {}
    variables: dict[str, str] = {}
    if deployment.environment is not None:
        environment, variables = read_environment(deployment.environment, location.below("environment"), findings)
    draft.put("environment", environment, location.at("environment"))
    newer = as_mapping((deployment.settings or {}).get("environment_variables"), location.at("settings"), findings)
    variables = {**variables, **(deployment.environment_variables or {}), **newer}
    draft.put("environment_variables", variables, location.at("environment_variables"))


def _model(deployment: DeploymentDocument, findings: Findings) -> dict[str, Any]:
    """The model as an input: by its path, or by its name, of the type that it was registered with."""
    model = deployment.model if isinstance(deployment.model, dict) else {"path": deployment.model}
    fields = {name: value for name, value in model.items() if name in ("path", "type") and value is not None}
    if model.get("path") is None and model.get("name"):
        fields["path"] = f"azureml:{model['name']}" + (f":{model['version']}" if model.get("version") else "")
    if "type" not in fields and findings.names is not None and reference_of(str(fields.get("path"))):
        with suppress(UnknownAsset, InvalidInput):  # told by whoever reads it as an input
            fields["type"] = findings.names.asset("model", str(fields["path"])).content.get("type") or MODEL_TYPES[0]
    return {"type": MODEL_TYPES[0], **fields}


def _put_data(deployment: DeploymentDocument, location: DocumentLocation, draft: Draft, findings: Findings) -> None:
    """The data of an invocation, the model, and the folder of the output."""
    where = location.below("inputs")
    raw = {name: {"path": each} if isinstance(each, str) else each for name, each in (deployment.inputs or {}).items()}
    raw_inputs = bindings.pipeline_inputs(raw, where, findings)
    data = {name: fields for name, fields in raw_inputs.items() if fields is not None}
    if not raw:
        hint = "--input DATA, or --set inputs.data.path=DATA"
        findings.wrong(where.pointer, "a deployment has no data of its own", hint)
    for name, fields in data.items():
        draft.origins[f"inputs/{name}"] = where.at(name)
        if "path" not in fields:
            findings.wrong(where.at(name), "a deployment of a model takes files and tables only", "give a path")
        if name == MODEL:
            findings.wrong(where.at(name), f"{MODEL!r} is the deployment's own model", f"call the data {DATA!r}")
    inputs = dict(data)
    if deployment.model is not None:
        fields = _model(deployment, findings)
        inputs |= {
            name: each for name, each in bindings.pipeline_inputs({MODEL: fields}, location, findings).items() if each
        }
        draft.origins[f"inputs/{MODEL}"] = location.at("model")
    draft.put("inputs", inputs, where.pointer)
    draft.put("input_data", list(data), where.pointer)
    _put_output(deployment, location.below("outputs"), draft, findings)


def _put_output(deployment: DeploymentDocument, location: DocumentLocation, draft: Draft, findings: Findings) -> None:
    scope = PipelineScope(findings)
    outputs = output_bindings.pipeline_outputs(deployment.outputs or {}, scope, location)
    if len(outputs) > 1:
        message = f"a deployment of a model has one folder for its output, not {len(outputs)}: {quoted(outputs)}"
        findings.wrong(location.pointer, message)
    for name, fields in outputs.items():
        draft.put("output", fields.get("path"), location.at(name, "path"))
