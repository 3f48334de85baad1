"""v1: `ParallelRunConfig` and `ParallelRunStep` (reference §1.1, §1.2)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final, Self

from parallelrun.builders.parts import Environment, Output, several, without_none
from parallelrun.builders.v1_inputs import PipelineParameter
from parallelrun.builders.v1_steps import (
    NO_PIPELINE,
    PIPELINE_TO_COME,
    StepInputSource,
    StepOutput,
    Surroundings,
    WiredStep,
    Wires,
    named,
)
from parallelrun.errors import InvalidInput

_MAY_BE_PARAMETERS: Final = frozenset({
    "mini_batch_size", "node_count", "process_count_per_node", "logging_level", "run_invocation_timeout",
    "run_max_try", "partition_keys",
})  # fmt: skip


@dataclass(slots=True)
class ParallelRunConfig:
    """The configuration of a step. Positional arguments come in the order of v1.

    Raises:
        InvalidInput: a field is wrong; also raised when a step is created from a configuration that was changed since.
    """

    environment: Environment
    entry_script: str
    error_threshold: int
    output_action: str
    compute_target: Any
    node_count: int | PipelineParameter
    process_count_per_node: int | PipelineParameter | None = None
    mini_batch_size: int | str | PipelineParameter | None = None
    source_directory: str | None = None
    description: str | None = None
    logging_level: str | PipelineParameter | None = None
    run_invocation_timeout: int | PipelineParameter | None = None
    run_max_try: int | PipelineParameter | None = None
    append_row_file_name: str | None = None
    allowed_failed_count: int | None = None
    allowed_failed_percent: float | None = None
    partition_keys: Sequence[str] | PipelineParameter | None = None
    environment_variables: dict[str, str] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.environment, Environment):
            raise InvalidInput.at("/parallel_run_config/environment", "an Environment is required")
        self.check()

    def check(self) -> None:
        """Check all fields.

        Raises:
            InvalidInput: some are wrong; it has a problem for each.
        """
        from parallelrun_core.azure.findings import Findings
        from parallelrun_core.azure.forms import CONFIG
        from parallelrun_core.azure.v1 import Config

        findings = Findings()
        findings.validate(Config, self.document(), f"/{CONFIG}")
        findings.check()

    def document(self, around: Surroundings = NO_PIPELINE) -> dict[str, Any]:
        """The fields as in a job file, with the values of pipeline parameters."""
        document = {field.name: _value(field.name, getattr(self, field.name), around) for field in fields(self)}
        document["environment"] = self.environment.document()
        document["source_directory"] = self.source_directory or around.source_directory
        document["compute_target_name"] = getattr(self.compute_target, "name", document.pop("compute_target", None))
        if isinstance(document["partition_keys"], tuple):  # text is refused as any other wrong type
            document["partition_keys"] = list(document["partition_keys"])
        return without_none(document)

    def save_to_yaml(self, path: str | Path) -> None:
        """Write a file for `load_yaml`, and with inputs added for `parallelrun run`.

        Raises:
            OSError: it can't be written.
        """
        import yaml

        text = yaml.safe_dump({"parallel_run_config": self.document()}, sort_keys=False)
        Path(path).write_text(text, encoding="utf-8")

    @classmethod
    def load_yaml(cls, workspace: Any = None, path: str | Path | None = None) -> Self:
        """Read such a file. As in v1, a workspace may be given before the path; it is ignored. Relative paths in the
        file start from the current folder.

        Raises:
            InvalidInput: it can't be read, or a field is wrong.
        """
        from parallelrun_core.azure.findings import DocumentLocation, Findings
        from parallelrun_core.azure.forms import CONFIG
        from parallelrun_core.azure.v1 import Config, environment_of
        from parallelrun_core.spec import load_document

        file = Path(workspace if path is None else path)
        try:
            document = load_document(file.read_bytes())
        except OSError as error:
            raise InvalidInput.at("", f"{file}: {error.strerror or error}") from error
        config_fields = document.get(CONFIG) if isinstance(document, dict) else None
        if not isinstance(config_fields, dict):
            raise InvalidInput.at(f"/{CONFIG}", f"{file} has no such mapping")
        findings = Findings()
        config = findings.validate(Config, config_fields, f"/{CONFIG}")
        location = DocumentLocation(f"/{CONFIG}", Path.cwd())
        environment, variables = environment_of(config, location, findings) if config is not None else ({}, {})
        findings.check()
        environment.setdefault("name", _name_of_environment(config_fields))
        field_names = {field.name for field in fields(cls)}
        arguments = {name: value for name, value in config_fields.items() if name in field_names}
        arguments["environment"] = Environment(**environment, environment_variables=variables or None)
        arguments["compute_target"] = config_fields.get("compute_target", config_fields.get("compute_target_name"))
        return cls(**arguments)


def _name_of_environment(config_fields: dict[str, Any]) -> str:
    name = config_fields.get("environment_name") or config_fields.get("environment")
    return name.removeprefix("azureml:").removesuffix("@latest") if isinstance(name, str) else ""


def _value(name: str, value: Any, around: Surroundings) -> Any:
    if not isinstance(value, PipelineParameter):
        return value
    if name not in _MAY_BE_PARAMETERS:
        raise InvalidInput.at(f"/parallel_run_config/{name}", "it can't be a PipelineParameter")
    resolved = around.value(value)
    if name != "partition_keys" or not isinstance(resolved, str):
        return resolved
    try:
        return json.loads(resolved)
    except ValueError as error:
        raise InvalidInput.at(f"/parallel_run_config/{name}", f"{resolved!r} is not a JSON list") from error


class ParallelRunStep(WiredStep):
    """A step: a configuration, its inputs, and the place of its output. `Client.jobs.create` accepts it, and so does a
    `Pipeline`.

    Args:
        inputs: paths, Inputs, or what other steps write, which are split into mini-batches one after another.
        output: a folder, or what other steps read; required unless the configuration says summary_only.
        side_inputs: what else the script reads, passed in `arguments`.
        arguments: strings, numbers, pipeline parameters, and what the script reads or writes, which stands for its
            path; what only they name is a side input or an output, too.

    Raises:
        InvalidInput: something is wrong; it says where.
    """

    def __init__(  # noqa: PLR0917 - v1 has this order
        self,
        name: str,
        parallel_run_config: ParallelRunConfig,
        inputs: Iterable[StepInputSource],
        output: Output | StepOutput | str | Path | None = None,
        side_inputs: Iterable[StepInputSource] | None = None,
        arguments: Iterable[Any] | None = None,
        allow_reuse: bool | None = None,
    ) -> None:
        main_inputs = named(several(inputs, "/inputs"), "input")
        all_inputs = [*main_inputs, *named(several(side_inputs, "/side_inputs"), "side_input")]
        outputs = [output] if isinstance(output, StepOutput) else []
        super().__init__(name, Wires.of(all_inputs, outputs, several(arguments, "/arguments")))
        self.parallel_run_config = parallel_run_config
        self._main_inputs = [each.name for each in main_inputs]
        self._output: object = output.path if isinstance(output, Output) else output
        self._allow_reuse = allow_reuse
        self._check()
        self.claim_outputs()

    def values(self) -> list[Any]:
        """Return what may be a pipeline parameter."""
        return [
            getattr(self.parallel_run_config, name) for name in sorted(_MAY_BE_PARAMETERS)
        ] + self.wires.possible_parameters()

    def document(self, around: Surroundings = NO_PIPELINE) -> dict[str, Any]:
        """The content of a job file for the same step.

        Raises:
            InvalidInput: it reads what another step writes, and is no part of a pipeline here.
        """
        inputs = self.wires.input_documents(around)
        document = {
            "parallel_run_config": self.parallel_run_config.document(around),
            "name": self.name,
            "inputs": [inputs[name] for name in self._main_inputs],
            "side_inputs": [fields for name, fields in inputs.items() if name not in self._main_inputs],
            "output": None if self._output is None else self.wires.argument(self._output, around, "/output"),
            "outputs": self.wires.output_documents() or None,
            "arguments": self.wires.argument_documents(around),
            "allow_reuse": self._allow_reuse,
        }
        return without_none(document)

    def _check(self) -> None:
        """Read the step as its pipeline will. Raises InvalidInput."""
        from parallelrun_core.intake.reading import read_job
        from parallelrun_core.names.assets import reference_of

        self.parallel_run_config.check()
        if not isinstance(self._output, StepOutput | str | Path | None):
            hint = "a folder, a PipelineData or an OutputFileDatasetConfig is one"
            raise InvalidInput.at("/output", f"{type(self._output).__name__} is no output of a step", hint)
        if self._output is None and self.parallel_run_config.output_action.lower() != "summary_only":
            raise InvalidInput.at("/output", "this is required", "the folder for the rows; or summary_only")
        document = self.document(PIPELINE_TO_COME)
        paths = (entry.get("path") for entry in [*document["inputs"], *document.get("side_inputs", ())])
        if not any(reference_of(str(path)) for path in paths):  # what names stand for is known where it is submitted
            read_job(document, folder=Path.cwd())
