"""The base of the steps of v1: inputs and outputs that other steps make or read, and arguments with them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple, Self

from parallelrun.builders.parts import Input, Output
from parallelrun.builders.step_data import OutputFileDatasetConfig, StepData, StepDataInput
from parallelrun.errors import InvalidInput


@dataclass(frozen=True)
class PipelineParameter:
    """A named value of a pipeline: its default, unless another one is given when the pipeline is submitted."""

    name: str
    default_value: Any


@dataclass(frozen=True)
class Surroundings:
    """The pipeline around a step that is described."""

    place_of: Callable[[StepData], str]
    """The path of what another step writes, or the expression for it. Raises InvalidInput if no step writes it."""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    """Values of pipeline parameters, in place of their defaults."""
    source_directory: str | None = None
    """The folder with the code of steps that name none."""

    def value(self, argument: Any) -> Any:
        """The value of a pipeline parameter; anything else as it is."""
        return (
            self.parameters.get(argument.name, argument.default_value)
            if isinstance(argument, PipelineParameter)
            else argument
        )


def _nowhere(data: StepData) -> str:
    message = f"{data.name or 'an input'} is the output of another step"
    raise InvalidInput.at("/inputs", message, "submit a Pipeline with both steps")


NO_PIPELINE = Surroundings(_nowhere)
"""Of a step that is no part of a pipeline: what other steps write is an error."""
PIPELINE_TO_COME = Surroundings(lambda data: "/to/be/known/later")
"""For the checks of a step whose pipeline is not made yet: any data may be those of another step."""

StepInputSource = Input | StepData | StepDataInput | str | Path


class NamedInput(NamedTuple):
    """An input of a step as it was given, and as an `Input` with a name; without a path, if another step makes it."""

    source: StepInputSource
    input: Input

    @property
    def name(self) -> str:
        return str(self.input.name)

    @property
    def data(self) -> StepData | None:
        """Return what another step writes; None: it comes from nowhere else in the pipeline."""
        if isinstance(self.source, StepDataInput):
            return self.source.data
        return self.source if isinstance(self.source, StepData) else None

    def fields(self, around: Surroundings) -> dict[str, Any]:
        """The fields of the input as in a job file."""
        if self.data is not None:
            return replace(self.input, path=around.place_of(self.data)).fields()
        if isinstance(self.source, DatasetInput) and self.source.parameter:
            value = around.value(self.source.parameter)
            value = value if isinstance(value, Input) else Input(path=str(value))
            return replace(value, name=self.input.name, mode=self.input.mode).fields()
        return self.input.fields()


@dataclass
class DatasetInput(Input):
    """An input whose data may be those of a pipeline parameter: its default, or what a submission names."""

    parameter: PipelineParameter | None = None


@dataclass(slots=True)
class Wires:
    """The data that a step reads and writes, by name.

    Args:
        outputs: what it writes, apart from what its arguments name.
        arguments: strings, numbers, pipeline parameters, and all that it reads or writes, which stands for its path.
    """

    inputs: list[NamedInput]
    outputs: dict[StepData, str]
    """Outputs of the step and their names: the output's own one, or `output_` and its number."""
    arguments: list[Any]

    @classmethod
    def of(cls, inputs: Iterable[NamedInput], outputs: Iterable[StepData], arguments: Iterable[Any]) -> Self:
        """The wires of a step; what only its arguments name is among them, too.

        Raises:
            InvalidInput: two inputs or two outputs have the same name.
        """
        wires = cls(list(inputs), {}, list(arguments))
        written = dict.fromkeys(outputs)
        for value in wires.arguments:
            if isinstance(value, StepDataInput) and not wires._input(value):
                wires.inputs += named([value], "argument", len(wires.inputs))
            elif isinstance(value, OutputFileDatasetConfig) and not wires._input(value):
                written[value] = None
        wires.outputs = _output_names(written)
        values: dict[str, Any] = {}
        for each in wires.inputs:
            same = each.data or each.source
            if values.setdefault(each.name, same) is not same:
                raise InvalidInput.at(f"/inputs/{each.name}", f"there is an input {each.name!r} already")
        return wires

    def output_documents(self) -> dict[str, dict[str, Any]]:
        """The outputs as in a job file, by name."""
        return {name: data.fields(name) for data, name in self.outputs.items()}

    def reads(self) -> list[StepData]:
        """Return what other steps write, and this one reads."""
        return [each.data for each in self.inputs if each.data is not None]

    def parameters(self) -> list[Any]:
        """Return what may be a pipeline parameter: arguments, and data of inputs."""
        return self.arguments + [each.source.parameter for each in self.inputs if isinstance(each.source, DatasetInput)]

    def documents(self, around: Surroundings) -> dict[str, dict[str, Any]]:
        """The inputs as in a job file, by name."""
        return {each.name: each.fields(around) for each in self.inputs}

    def argument(self, value: Any, around: Surroundings) -> Any:
        """An argument as in a job file.

        Raises:
            InvalidInput: it is the output of another step, and no input of this one.
        """
        from parallelrun_core.storage.supported import absolute_path

        if (name := self._input(value)) is not None:
            return f"${{{{inputs.{name}}}}}"
        if isinstance(value, StepData):
            if value not in self.outputs:
                hint = "list it in inputs or outputs"
                raise InvalidInput.at(
                    "/arguments", f"{value.name} is neither an input nor an output of this step", hint
                )
            return f"${{{{outputs.{self.outputs[value]}}}}}"
        if isinstance(value, Output):
            return absolute_path(value.path or ".", Path.cwd())
        value = around.value(value)
        return str(value) if isinstance(value, Path) else value

    def _input(self, value: Any) -> str | None:
        """The name of the input that an argument stands for."""
        return next((each.name for each in self.inputs if each.source is value), None)


def named(inputs: Iterable[StepInputSource], prefix: str, first: int = 0) -> list[NamedInput]:
    """Each input with its name; one that has none gets this prefix and its number."""
    named_inputs = []
    for number, step_input in enumerate(inputs, first):
        if isinstance(step_input, Input):
            data = step_input
        elif isinstance(step_input, StepDataInput):
            data = Input(name=step_input.name or step_input.data.output_name, mode=step_input.mode)
            data.transformations = list(step_input.transformations) or None
        elif isinstance(step_input, StepData):
            data = Input(name=step_input.output_name)
        else:
            data = Input(path=str(step_input))
        named_inputs.append(NamedInput(step_input, replace(data, name=data.name or f"{prefix}_{number}")))
    return named_inputs


def _output_names(outputs: Iterable[StepData]) -> dict[StepData, str]:
    """Each output with its name; one that has none gets the next one that is free."""
    names = {data: data.output_name for data in outputs}
    taken: set[str] = set()
    for name in filter(None, names.values()):
        if name in taken:
            raise InvalidInput.at(f"/outputs/{name}", f"there is an output {name!r} already")
        taken.add(name)
    numbered = (name for number in count() if (name := f"output_{number}") not in taken)
    return {data: name or next(numbered) for data, name in names.items()}
