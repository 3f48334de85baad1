"""The base of the steps of v1: inputs and outputs that other steps make or read, and arguments with them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

from parallelrun.builders.parts import Input, Output
from parallelrun.builders.step_data import (
    OutputFileDatasetConfig,
    OutputTabularDatasetConfig,
    StepData,
    StepDataInput,
)
from parallelrun.builders.v1_inputs import DatasetInput, PipelineParameter, ReportsMissing
from parallelrun.errors import InvalidInput


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

_MOUNT: Final = "ro_mount"
"""The mode of an input that names none."""
StepInputSource = Input | StepData | str | Path
StepOutput = StepData | StepDataInput


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
        return _data_of(self.input)

    @property
    def parameter(self) -> PipelineParameter | None:
        """Return the parameter of the pipeline that names the data; None: no parameter does."""
        return self.input.parameter if isinstance(self.input, DatasetInput) else None

    def fields(self, around: Surroundings) -> dict[str, Any]:
        """Return the fields of the input as in a job file."""
        if self.data is not None:
            return replace(self.input, path=around.place_of(self.data)).fields()
        if self.parameter is None:
            return self.input.fields()
        value = around.value(self.parameter)
        value = value if isinstance(value, Input) else Input(path=str(value))
        return replace(value, name=self.input.name, mode=self.input.mode).fields()


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
    def of(cls, inputs: Iterable[NamedInput], outputs: Iterable[StepOutput], arguments: Iterable[Any]) -> Self:
        """Return the wires of a step; what only its arguments name is among them, too.

        Raises:
            InvalidInput: two different inputs or two outputs have the same name, or an output is none.
        """
        wires = cls(list(inputs), {}, list(arguments))
        written = dict.fromkeys(map(_written, outputs))
        for value in wires.arguments:
            if wires._input(value) or _data_of(value) in written:
                continue
            if isinstance(value, OutputFileDatasetConfig | OutputTabularDatasetConfig):
                written[_written(value)] = None
            elif isinstance(value, Input):
                wires.inputs += named([value], "argument", len(wires.inputs))
        wires.outputs = _output_names(written)
        meanings: dict[str, Any] = {}
        for each in wires.inputs:
            meaning = (each.data, each.parameter, each.input.fields())
            if meanings.setdefault(each.name, meaning) != meaning:
                hint = "give one of them another name, as with as_named_input"
                raise InvalidInput.at(f"/inputs/{each.name}", f"there is an input {each.name!r} already", hint)
        return wires

    def output_documents(self) -> dict[str, dict[str, Any]]:
        """The outputs as in a job file, by name."""
        return {name: data.fields(name) for data, name in self.outputs.items()}

    def reads(self) -> list[StepData]:
        """Return what other steps write, and this one reads."""
        return [each.data for each in self.inputs if each.data is not None]

    def parameters(self) -> list[Any]:
        """Return what may be a pipeline parameter: arguments, and data of inputs."""
        return self.arguments + [each.parameter for each in self.inputs]

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
        if (data := _data_of(value)) is not None:
            if data not in self.outputs:
                message = f"{data.name} is neither an input nor an output of this step"
                raise InvalidInput.at("/arguments", message, "list it in inputs or outputs")
            return f"${{{{outputs.{self.outputs[data]}}}}}"
        if isinstance(value, Output):
            return absolute_path(value.path or ".", Path.cwd())
        value = around.value(value)
        if isinstance(value, Input | ReportsMissing):
            raise InvalidInput.at("/arguments", f"{type(value).__name__} is no argument", "its name or path may be one")
        return str(value) if isinstance(value, Path) else value

    def _input(self, value: Any) -> str | None:
        """The name of the input that an argument stands for: itself, or one of the same data, read as it says."""
        for each in self.inputs:
            if each.source is value and not isinstance(value, str):
                return each.name
        if (data := _data_of(value)) is None:
            return None
        needed = (value if isinstance(value, StepDataInput) else data.as_input()).fields().items()
        for each in self.inputs:
            if each.data is data and needed <= {"mode": _MOUNT, **each.input.fields()}.items():
                return each.name
        return None


class WiredStep(ReportsMissing):
    """A step of v1, which `Pipeline` puts into the order of what its steps read and write."""

    def __init__(self, name: str, wires: Wires) -> None:
        self.name = name
        self.wires = wires
        self.after: list[WiredStep] = []

    def run_after(self, step: WiredStep) -> None:
        """Begin only when that step has completed, though no data of it is needed."""
        self.after.append(step)

    def claim_outputs(self) -> None:
        """Become the step that writes these outputs, in place of one that was made before."""
        for data in self.wires.outputs:
            data.writer = self


def named(inputs: Iterable[Any], prefix: str, first: int = 0) -> list[NamedInput]:
    """Return each input with its name; one that has none gets this prefix and its number.

    Raises:
        InvalidInput: one is no input.
    """
    named_inputs = []
    for number, source in enumerate(inputs, first):
        described = source.as_input() if isinstance(source, StepData) else source
        described = Input(path=str(described)) if isinstance(described, str | Path) else described
        if not isinstance(described, Input):
            hint = "a path, an Input, or what another step writes; a PipelineParameter in a DatasetConsumptionConfig"
            raise InvalidInput.at(f"/{prefix}s/{number}", f"{type(described).__name__} is no input", hint)
        data = _data_of(described)
        name = described.name or (data.output_name if data else "") or f"{prefix}_{number}"
        named_inputs.append(NamedInput(source, replace(described, name=name)))
    return named_inputs


def _data_of(value: Any) -> StepData | None:
    data = value.data if isinstance(value, StepDataInput) else value
    return data if isinstance(data, StepData) else None


def _written(output: Any) -> StepData:
    if (data := _data_of(output)) is None:
        hint = "a PipelineData or an OutputFileDatasetConfig is one"
        raise InvalidInput.at("/outputs", f"{type(output).__name__} is no output of a step", hint)
    return data


def _output_names(outputs: Iterable[StepData]) -> dict[StepData, str]:
    """Each output with its name; one that has none gets the next one that is free."""
    names = {data: data.output_name for data in outputs}
    names_in_use: set[str] = set()
    for name in filter(None, names.values()):
        if name in names_in_use:
            raise InvalidInput.at(f"/outputs/{name}", f"there is an output {name!r} already")
        names_in_use.add(name)
    numbered = (name for number in count() if (name := f"output_{number}") not in names_in_use)
    return {data: name or next(numbered) for data, name in names.items()}
