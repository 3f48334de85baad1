"""A v1 document becomes a job: `parallel_run_config`, and the arguments of a `ParallelRunStep` (reference §1.1, §1.2).

`ParallelRunConfig.save_to_yaml` writes only the first part; the second, which is code in v1, has our own form:

    parallel_run_config: {entry_script: score.py, …}
    inputs: [./data]                  # or by name; paths, or mappings with path, type and mode
    side_inputs: {model: ./model}     # passed to the script by its arguments
    arguments: [--model, "${{inputs.model}}"]
    output: ./out                     # or one of `outputs`: "${{outputs.scores}}"
    outputs: {scores: {type: uri_folder}}
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import Field, StrictBool, StrictInt, StrictStr, field_validator, model_validator

from parallelrun_core.azure.draft import Draft
from parallelrun_core.azure.environment import read_environment, read_file
from parallelrun_core.azure.findings import DocumentLocation, Findings, as_mapping
from parallelrun_core.azure.forms import CONFIG
from parallelrun_core.azure.named import named_input
from parallelrun_core.azure.options import hints_of_options
from parallelrun_core.azure.part import DataAdditions, DocumentPart
from parallelrun_core.azure.v2_models import Count, FileName, Threshold
from parallelrun_core.errors import InvalidInput
from parallelrun_core.names.computes import NOTE
from parallelrun_core.spec.expressions import bound_name
from parallelrun_core.spec.fields import checked_path, checked_size
from parallelrun_core.spec.job_checks import in_order
from parallelrun_core.spec.problems import at
from parallelrun_core.storage.location import in_datastore

RESERVED_ARGUMENTS: Final = (
    "mini_batch_size", "error_threshold", "allowed_failed_count", "allowed_failed_percent", "output", "output_action",
    "logging_level", "process_count_per_node", "run_invocation_timeout", "run_max_try", "append_row_file_name",
    "partition_keys",
)  # fmt: skip
_STEP_NAME: Final = re.compile(r"[a-z][a-z0-9-]{1,30}[a-z0-9]")
_CONDA_IN_FOLDER: Final = "conda_dependencies.yml"


class Config(DocumentPart):
    """The fields of a `ParallelRunConfig` (reference §1.1)."""

    environment: Any = None
    environment_name: StrictStr | None = None
    environment_dir_path: StrictStr | None = None
    entry_script: Annotated[StrictStr, Field(min_length=1)]
    error_threshold: Threshold
    output_action: Literal["append_row", "summary_only"]
    compute_target: Any = None
    compute_target_name: Any = None
    node_count: Count
    process_count_per_node: Count | None = None
    mini_batch_size: Any = None
    source_directory: StrictStr | None = None
    description: StrictStr | None = None
    logging_level: Literal["WARNING", "INFO", "DEBUG"] | None = None
    run_invocation_timeout: Annotated[StrictInt, Field(gt=0, le=259_200)] | None = None
    run_max_try: Count | None = None
    append_row_file_name: FileName | None = None
    allowed_failed_count: Threshold | None = None
    allowed_failed_percent: Annotated[float, Field(ge=0, le=100)] | None = None
    partition_keys: list[StrictStr] | None = None
    environment_variables: dict[str, StrictStr] | None = None

    _keys_in_order = field_validator("partition_keys", mode="before")(in_order)
    _is_a_size = field_validator("mini_batch_size")(checked_size)

    @field_validator("output_action", mode="before")
    @classmethod
    def _any_case(cls, value: object) -> object:
        return value.lower() if isinstance(value, str) else value

    @model_validator(mode="after")
    def _consistent(self) -> Config:
        if self.environment is None and self.environment_name is None and self.environment_dir_path is None:
            raise at("environment", "this field is required")
        if self.compute_target is None and self.compute_target_name is None:
            raise at(
                "compute_target_name", "this field is required; any name will do as long as the server has no computes"
            )
        if self.partition_keys is not None and self.mini_batch_size is not None:
            raise at("partition_keys", "set either partition_keys or mini_batch_size, not both")
        if self.partition_keys is not None and not self.partition_keys:
            raise at("partition_keys", "must have at least one key; leave the field out to cut by mini_batch_size")
        return self


class GivenData(DataAdditions):
    """An input of a step: by its path, or as a v1 `DataReference` names what is in a datastore."""

    name: StrictStr | None = None
    data_reference_name: StrictStr | None = None
    path: StrictStr | None = None
    datastore: StrictStr | None = None
    path_on_datastore: StrictStr | None = None
    type: Literal["uri_folder", "uri_file", "mltable"] = "uri_folder"
    mode: Literal["ro_mount", "mount", "direct", "download"] | None = None

    @model_validator(mode="before")
    @classmethod
    def _pair(cls, value: Any) -> Any:
        """`path: [DATASTORE, PATH]`, as the pair that `Dataset.File.from_files` takes."""
        if isinstance(value, dict) and isinstance(value.get("path"), list | tuple) and len(value["path"]) == 2:
            datastore, path = value["path"]
            return {**value, "path": None, "datastore": datastore, "path_on_datastore": path}
        return value

    @model_validator(mode="after")
    def _one_place(self) -> GivenData:
        if (self.path is None) == (self.datastore is None):
            raise at("path", "set either path, or datastore and path_on_datastore")
        return self

    @property
    def place(self) -> str:
        """The path or URL of it."""
        return self.path or in_datastore(self.datastore or "", (self.path_on_datastore or "").strip("/"))


class StepDocument(DocumentPart):
    parallel_run_config: Any
    name: StrictStr | None = None
    inputs: Any = None
    side_inputs: Any = None
    output: StrictStr | None = None
    outputs: Any = None
    arguments: list[Any] | None = None
    allow_reuse: StrictBool | None = None


_HINTS: Final = hints_of_options(
    "it is among the arguments of the step: arguments: [--{}, VALUE]", StepDocument, Config
)


def read_v1(
    document: Mapping[str, Any], location: DocumentLocation, findings: Findings, *, is_step: bool = False
) -> Draft:
    step = findings.validate(StepDocument, document, location.pointer, _HINTS)
    here = location.below(CONFIG)
    config = findings.validate(Config, as_mapping(document.get(CONFIG), here.pointer, findings), here.pointer, _HINTS)
    draft = Draft(default=location.pointer, is_step=is_step)
    if step is not None:
        _put_step(step, location, draft, findings)
    if config is not None:
        _put_config(config, here, draft, findings)
    return draft


# The configuration


def _put_config(config: Config, location: DocumentLocation, draft: Draft, findings: Findings) -> None:
    same = (
        "error_threshold", "output_action", "mini_batch_size", "description", "logging_level", "run_max_try",
        "run_invocation_timeout", "append_row_file_name", "allowed_failed_percent", "partition_keys",
    )  # fmt: skip
    for name in same:
        draft.put(name, getattr(config, name), location.at(name))
    draft.put("instance_count", config.node_count, location.at("node_count"))
    draft.put("max_concurrency_per_instance", config.process_count_per_node, location.at("process_count_per_node"))
    draft.put("mini_batch_error_threshold", config.allowed_failed_count, location.at("allowed_failed_count"))
    environment, variables = environment_of(config, location, findings)
    draft.put("environment", environment, location.at("environment"))
    draft.put(
        "environment_variables",
        {**variables, **(config.environment_variables or {})},
        location.at("environment_variables"),
    )
    name = "compute_target" if config.compute_target is not None else "compute_target_name"
    findings.note(location.at(name), NOTE)
    target = getattr(config, name)
    target = target.get("name") if isinstance(target, dict) else target
    draft.put("compute", target if isinstance(target, str) else None, location.at(name))
    script, code = config.entry_script, config.source_directory
    if code is None:
        code, script = str(Path(script).parent), Path(script).name
    draft.put("code", location.absolute(code), location.at("source_directory"))
    draft.put("entry_script", script, location.at("entry_script"))


def environment_of(
    config: Config, location: DocumentLocation, findings: Findings
) -> tuple[dict[str, Any], dict[str, str]]:
    """The environment as the job spec has it, and the variables that come with it."""
    if config.environment_dir_path is not None:
        file = str(Path(config.environment_dir_path) / _CONDA_IN_FOLDER)
        where = location.below("environment_dir_path")
        packages = read_file(file, where, findings) or {"dependencies": []}
        return read_environment({"name": config.environment_name, "conda_file": packages}, where, findings)
    if config.environment is None:
        return read_environment(f"azureml:{config.environment_name}", location.below("environment_name"), findings)
    where = location.below("environment")
    if isinstance(config.environment, str):
        name = config.environment.removeprefix("azureml:")
        return read_environment(f"azureml:{name}", where, findings)
    return read_environment(_as_v2(config.environment), where, findings)


def _as_v2(environment: object) -> object:
    """A v1 environment in the form of v2."""
    if not isinstance(environment, dict) or not {"python", "docker", "environmentVariables"} & set(environment):
        return environment
    python = environment.get("python") or {}
    docker = environment.get("docker") or {}
    conda = python.get("condaDependencies") or python.get("conda_dependencies")
    image = docker.get("baseImage") or docker.get("base_image")
    variables = environment.get("environmentVariables") or environment.get("environment_variables")
    fields = {
        "name": environment.get("name"),
        "conda_file": conda,
        "image": image or (None if conda else "the image of the environment"),
        "environment_variables": variables,
    }
    return {name: value for name, value in fields.items() if value}


# The step


def _put_step(step: StepDocument, location: DocumentLocation, draft: Draft, findings: Findings) -> None:
    if step.name is not None and not _STEP_NAME.fullmatch(step.name):
        form = "3 to 32 lowercase letters, digits and '-', starting with a letter and not ending with '-'"
        message = f"{step.name!r} is not a valid step name: {form}"
        findings.wrong(location.at("name"), message)
    draft.put("name", step.name, location.at("name"))
    data = _inputs(step.inputs, "input", location.below("inputs"), draft, findings)
    side = _inputs(step.side_inputs, "side_input", location.below("side_inputs"), draft, findings)
    if len({side_input["type"] == "mltable" for side_input in data.values()}) > 1:
        findings.wrong(location.at("inputs"), "inputs must be all files or all tables")
    for name, side_input in data.items():
        if side_input["type"] == "mltable" and side_input["mode"] != "direct":
            findings.wrong(location.at("inputs", name, "mode"), "a table must have mode: direct")
    for name, side_input in side.items():
        if side_input["type"] == "mltable":
            findings.wrong(location.at("side_inputs", name, "type"), "a side input must be a folder or a file")
        if name in data:
            findings.wrong(location.at("side_inputs", name), f"there is an input {name!r} already")
    draft.put("inputs", {**data, **side}, location.at("inputs"))
    draft.put("input_data", list(data), location.at("inputs"))
    _put_outputs(step, location, draft)
    draft.put("program_arguments", _arguments(step.arguments or [], location, findings), location.at("arguments"))
    if step.allow_reuse and not draft.is_step:
        findings.note(location.at("allow_reuse"), "the result of an earlier job is never reused")


def _put_outputs(step: StepDocument, location: DocumentLocation, draft: Draft) -> None:
    """The folder of the rows, which may be one of the named outputs, and these."""
    draft.put("outputs", step.outputs, location.at("outputs"))
    name = bound_name(step.output or "", "outputs")
    if name != (step.output or ""):
        draft.put("append_row_to", name, location.at("output"))
    elif step.output is not None:
        draft.put("output", location.absolute(step.output), location.at("output"))


def _inputs(
    value: Any, prefix: str, location: DocumentLocation, draft: Draft, findings: Findings
) -> dict[str, dict[str, Any]]:
    """Inputs by name; unnamed ones get a numbered name. Puts their origins into the draft."""
    if isinstance(value, str):
        value = [value]
    pairs: list[tuple[str, str | int, Any]]
    if isinstance(value, list):
        pairs = [(_name_of(entry) or f"{prefix}_{number}", number, entry) for number, entry in enumerate(value)]
    else:
        pairs = [(name, name, entry) for name, entry in as_mapping(value, location.pointer, findings).items()]
    inputs: dict[str, dict[str, Any]] = {}
    for name, key, entry in pairs:
        where = location.below(key)
        data = findings.validate(GivenData, {"path": entry} if isinstance(entry, str) else entry, where.pointer)
        if data is None:
            continue
        place = findings.place(data.place, where.pointer)
        named = named_input(place, data.type if "type" in data.model_fields_set else None, where, findings)
        if named == {}:
            continue
        try:
            path = str(named["path"]) if named else location.absolute(checked_path(place))
        except (ValueError, InvalidInput) as error:
            findings.wrong(where.at("path"), str(error))
            continue
        if name in inputs:
            findings.wrong(where.pointer, f"there is an input {name!r} already")
        draft.origins[f"inputs/{name}"] = where.pointer
        default = "direct" if data.type == "mltable" else "ro_mount"
        mode = "ro_mount" if data.mode == "mount" else data.mode or default
        inputs[name] = {"path": path, "type": data.type, "mode": mode}
        inputs[name] |= {key: value for key, value in (named or {}).items() if key in ("asset", "model")}
        additions = ((key, getattr(data, key)) for key in DataAdditions.model_fields)
        inputs[name] |= {key: value for key, value in additions if value}
    return inputs


def named_inputs(value: Any, prefix: str) -> Any:
    """Inputs by name, as far as they are a list; unnamed ones get a numbered name."""
    if not isinstance(value, list):
        return value
    return {_name_of(entry) or f"{prefix}_{number}": entry for number, entry in enumerate(value)}


def _name_of(entry: object) -> str | None:
    name = (entry.get("name") or entry.get("data_reference_name")) if isinstance(entry, dict) else None
    return name if isinstance(name, str) else None


def _arguments(arguments: list[Any], location: DocumentLocation, findings: Findings) -> str:
    """The arguments as one string, quoted as for a shell."""
    pointer = location.at("arguments")
    words = []
    for number, value in enumerate(arguments):
        if not isinstance(value, str | int | float):
            findings.wrong(f"{pointer}/{number}", "must be a string or a number")
            continue
        word = str(value)
        name = word.removeprefix("--").partition("=")[0]
        if number == 0 and not word.startswith("-"):
            findings.wrong(f"{pointer}/{number}", f"{word!r}: the name of an option starts with '-'")
        if word.startswith("--") and name in RESERVED_ARGUMENTS:
            message = f"--{name} is the engine's own: set {name} in {CONFIG}"
            findings.wrong(f"{pointer}/{number}", message if name != "output" else "--output is the engine's own")
        words.append(word)
    return shlex.join(words)
