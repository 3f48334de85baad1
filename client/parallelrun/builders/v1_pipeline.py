"""v1's `Pipeline` of `ParallelRunStep` and `PythonScriptStep`: each describes a step of a pipeline document."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from copy import copy
from pathlib import Path
from typing import Any, ClassVar, Final, Self

from parallelrun.builders.missing import ReportsMissing
from parallelrun.builders.parts import NOT_OF_JOBS, Environment, refuse, several, without_none
from parallelrun.builders.step_data import StepData
from parallelrun.builders.v1_inputs import PipelineParameter, checked_text, is_table
from parallelrun.builders.v1_steps import (
    NO_PIPELINE,
    PIPELINE_TO_COME,
    StepInputSource,
    StepOutput,
    Surroundings,
    WiredStep,
    Wires,
    checked_step,
    named,
)
from parallelrun.errors import InvalidInput

_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9_-]")
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class PythonScriptStep(WiredStep):
    """A step that runs a script once.

    Args:
        runconfig: anything with an `environment`.
        inputs, outputs: what it reads and writes, apart from what its arguments name.
        params: become environment variables `AML_PARAMETER_NAME`, as in v1.
        source_directory: the folder with the code; by default that of the pipeline, or the current one.
        compute_target, version, hash_paths: no effect; a step is used again where its code and data are the same.

    Raises:
        InvalidInput: two inputs or outputs have the same name, an input is a table, an argument has no text, or there
            are `runconfig_pipeline_params`.
    """

    def __init__(
        self,
        script_name: str,
        name: str | None = None,
        arguments: Iterable[Any] | None = None,
        compute_target: Any = None,
        runconfig: Any = None,
        *,
        inputs: Iterable[StepInputSource] | None = None,
        outputs: Iterable[StepOutput] | None = None,
        params: Mapping[str, Any] | None = None,
        source_directory: str | None = None,
        allow_reuse: bool = True,
        runconfig_pipeline_params: Mapping[str, Any] | None = None,
        version: str | None = None,
        hash_paths: Iterable[str] | None = None,
    ) -> None:
        refuse(
            "of a run configuration, a step uses the environment", runconfig_pipeline_params=runconfig_pipeline_params
        )
        wires = Wires.of(
            named(several(inputs, "/inputs"), "input"), several(outputs, "/outputs"), several(arguments, "/arguments")
        )
        super().__init__(name or script_name, wires)
        self._script, self._code, self._allow_reuse = script_name, source_directory, allow_reuse
        self._params = dict(params or {})
        self._environment = getattr(runconfig, "environment", None)
        self.document(PIPELINE_TO_COME)  # raises for what is wrong
        self.claim_outputs()

    def values(self) -> list[Any]:
        """Return what may be a pipeline parameter."""
        return [*self._params.values(), *self.wires.possible_parameters()]

    def document(self, around: Surroundings = NO_PIPELINE) -> dict[str, Any]:
        """The content of a job file for the same step.

        Raises:
            InvalidInput: an input is a table, or another step writes it and there is no pipeline here.
        """
        environment, variables = _environment(self._environment)
        params = {
            f"AML_PARAMETER_{name}": checked_text(str(around.value(value)), f"/params/{name}")
            for name, value in self._params.items()
        }
        inputs = self.wires.input_documents(around).items()
        for name, fields in inputs:
            if is_table(fields.get("transformations")):
                hint = "give it the files without parse_…, read_… or from_…, and let the script read them"
                raise InvalidInput.at(f"/inputs/{name}", "a script gets no table: a ParallelRunStep does", hint)
        document = {
            "code": self._code or around.source_directory or ".",
            "command": " ".join(
                ["python", shlex.quote(self._script), *map(_word, self.wires.argument_documents(around))]
            ),
            "environment": environment or None,
            "environment_variables": {**variables, **params} or None,
            "inputs": {name: {key: fields[key] for key in fields if key != "name"} for name, fields in inputs} or None,
            "outputs": self.wires.output_documents() or None,
        }
        return without_none(document)


class StepSequence:
    """Steps that run one after another, whatever data they need of each other. Elements that are lists run together."""

    def __init__(self, steps: Iterable[Any]) -> None:
        self.steps = several(steps, "/steps")
        for earlier, later in zip(self.steps, self.steps[1:], strict=False):
            for step in _flat([later]):
                for needed in _flat([earlier]):
                    step.run_after(needed)


class Pipeline(ReportsMissing):
    """A pipeline of v1. `Client.jobs.create` accepts it.

    Args:
        workspace, default_datastore: no effect.
        steps: also lists of steps, and StepSequences. Steps whose data they need are found by themselves, as in v1.
        default_source_directory: the folder with the code of steps that name none.
        resolve_closure: False: steps whose data are needed are not found by themselves.

    Raises:
        InvalidInput: one of the steps is none.
    """

    INSTEAD: ClassVar = {
        "publish": "a batch endpoint or a schedule runs a pipeline again",
        "submit": "Experiment(workspace, name).submit(pipeline), or Client().jobs.create(pipeline)",
    }

    def __init__(  # noqa: PLR0917 - v1 has this order
        self,
        workspace: Any = None,
        steps: Iterable[Any] = (),
        description: str | None = None,
        default_datastore: Any = None,
        default_source_directory: str | None = None,
        resolve_closure: bool = True,
    ) -> None:
        flat_steps = _flat([steps] if isinstance(steps, StepSequence) else several(steps, "/steps"))
        self._steps = _with_needed(flat_steps) if resolve_closure else flat_steps
        self._source_directory = default_source_directory
        self._description = description
        self._settings: dict[str, Any] = {}
        self._experiment: str | None = None
        self._parameters: dict[str, Any] = {}

    def submitted_with(
        self,
        pipeline_parameters: Mapping[str, Any] | None = None,
        *,
        experiment_name: str | None = None,
        continue_on_step_failure: bool = False,
        regenerate_outputs: bool = False,
    ) -> Self:
        """Return the pipeline with what v1 gives when it submits one.

        Args:
            pipeline_parameters: values in place of the defaults of its `PipelineParameter`s.

        Raises:
            InvalidInput: it has no such parameter.
        """
        parameters = self.parameters()
        for name in pipeline_parameters or {}:
            if name not in parameters:
                has = ", ".join(parameters) or "none"
                raise InvalidInput.at(f"/pipeline_parameters/{name}", "there is no such parameter", f"it has: {has}")
        changed = copy(self)
        changed._parameters = {**self._parameters, **(pipeline_parameters or {})}
        changed._experiment = experiment_name or self._experiment
        changed._settings = {"continue_on_step_failure": continue_on_step_failure, "force_rerun": regenerate_outputs}
        return changed

    def parameters(self) -> dict[str, Any]:
        """The parameters of its steps, with their values."""
        parameter_values = [
            value for step in self._steps for value in step.values() if isinstance(value, PipelineParameter)
        ]
        return {each.name: self._parameters.get(each.name, each.default_value) for each in parameter_values}

    def validate(self) -> list[Any]:
        """Return no errors, as v1 does of a pipeline that can be submitted.

        Raises:
            InvalidInput: something is wrong; it says where.
        """
        from parallelrun_core.intake.reading import read_job

        read_job(self.document(), folder=Path.cwd())
        return []

    def document(self) -> dict[str, Any]:
        """The content of a job file for the same pipeline.

        Raises:
            InvalidInput: a step reads what no step writes, or two steps write the same.
        """
        names = _names(self._steps)
        writers: dict[StepData, str] = {}
        for step in self._steps:
            for data, output_name in step.wires.outputs.items():
                if data in writers:
                    both = f"{names[id(step)]} writes what another step writes"
                    raise InvalidInput.at("/outputs", f"{both}: {data.name or output_name}", "give each its own")
                writers[data] = f"${{{{parent.jobs.{names[id(step)]}.outputs.{output_name}}}}}"

        def place_of(data: StepData) -> str:
            if data not in writers:
                raise InvalidInput.at("/inputs", f"no step of the pipeline writes {data.name or 'this data'}")
            return writers[data]

        values = self.parameters()
        around = Surroundings(place_of, values, self._source_directory)
        document = {
            "type": "pipeline",
            "description": self._description,
            "experiment_name": self._experiment,
            "inputs": {name: value for name, value in values.items() if _is_literal(name, value)} or None,
            "settings": self._settings or {"continue_on_step_failure": False},
            "jobs": {names[id(step)]: _document(step, around, names) for step in self._steps},
        }
        return without_none(document)


def _document(step: Any, around: Surroundings, names: Mapping[int, str]) -> dict[str, Any]:
    after = [names[id(needed)] for needed in step.after if id(needed) in names]
    document = {**step.document(around), "after": after or None}
    if isinstance(step, PythonScriptStep):
        document["is_deterministic"] = step._allow_reuse
    return without_none(document)


def _flat(steps: Iterable[Any]) -> list[Any]:
    flat: list[Any] = []
    for step in steps:
        inner = step.steps if isinstance(step, StepSequence) else step
        flat += _flat(inner) if isinstance(inner, list | tuple) else [checked_step(step)]
    return list({id(step): step for step in flat}.values())


def _with_needed(steps: list[Any]) -> list[Any]:
    """The steps, and those that they need, each before the steps that need it."""
    in_order: list[Any] = []
    visited: set[int] = set()

    def add(step: Any) -> None:
        if step is not None and id(step) not in visited:
            visited.add(id(step))
            for needed in [*(data.writer for data in step.wires.reads()), *step.after]:
                add(needed)
            in_order.append(step)

    for step in steps:
        add(step)
    return in_order


def _names(steps: Iterable[Any]) -> dict[int, str]:
    """The name of each step in the document, by its identity; a name that comes again gets a number."""
    names: dict[int, str] = {}
    for step in steps:
        plain = _NOT_IN_NAMES.sub("_", step.name)[:100].lstrip("-") or "step"
        used_names = {name.lower() for name in names.values()}
        numbered = (plain, *(f"{plain}_{number}" for number in range(2, len(used_names) + 3)))
        names[id(step)] = next(name for name in numbered if name.lower() not in used_names)
    return names


def _is_literal(name: str, value: Any) -> bool:
    return _NAME.fullmatch(name) is not None and isinstance(value, bool | int | float | str)


def _word(value: Any) -> str:
    """An argument in a command; an expression is quoted where it gets its value."""
    text = str(value)
    return text if text.startswith("${{") and text.endswith("}}") else shlex.quote(text)


def _environment(environment: Any) -> tuple[dict[str, Any], dict[str, str]]:
    """The environment as a job spec has it, and the variables that come with it."""
    if not isinstance(environment, Environment):
        return {}, {}
    document = environment.document()
    fields = document if isinstance(document, dict) else {}
    of_job = {name: value for name, value in fields.items() if name not in NOT_OF_JOBS}
    return of_job, environment.environment_variables or {}
