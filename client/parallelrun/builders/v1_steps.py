"""The base of the steps of v1: inputs and outputs that other steps make or read, and arguments with them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

from parallelrun.builders.missing import ReportsMissing
from parallelrun.builders.output_dataset_config import OutputFileDatasetConfig, OutputTabularDatasetConfig
from parallelrun.builders.parts import Input, Output
from parallelrun.builders.step_data import PipelineOutputAbstractDataset, StepData, StepDataInput
from parallelrun.builders.v1_inputs import MOUNT, DatasetInput, PipelineParameter, checked_text
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

StepInputSource = Input | StepData | str | Path
"""What a step can have as an input."""
StepOutput = StepData | PipelineOutputAbstractDataset | OutputTabularDatasetConfig
"""What a step can have as an output: as_input() of one of them is what another step reads."""


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
        """Return the fields of the input as in a job file; data that a parameter names come with their own steps."""
        if self.data is not None:
            return replace(self.input, path=around.place_of(self.data)).fields()
        if self.parameter is None:
            return self.input.fields()
        pointer = f"/pipeline_parameters/{self.parameter.name}"
        value = _as_input(around.value(self.parameter), pointer)
        if (data := _data_of(value)) is not None:
            hint = "no parameter has it as its value: give it to the step itself"
            raise InvalidInput.at(pointer, f"{data.name or 'this'} is the output of a step", hint)
        return replace(value, name=self.input.name, mode=self.input.mode).fields()


_STEPS: Final = "transformations"


@dataclass(frozen=True, slots=True)
class Wires:
    """The data that a step reads and writes, by name."""

    inputs: list[NamedInput]
    """Data that the step reads, also those that only its arguments name."""
    outputs: dict[StepData, str]
    """Outputs of the step and their names: the output's own one, or `output_` and its number."""
    arguments: list[Any]
    """Text, numbers, paths, pipeline parameters, and what the step reads or writes, which stands for its path."""

    @classmethod
    def of(cls, inputs: Iterable[NamedInput], outputs: Iterable[StepOutput], arguments: Iterable[Any]) -> Self:
        """Return the wires of a step.

        Args:
            inputs: what it reads, apart from what only its arguments name.
            outputs: what it writes, likewise.
            arguments: of its program, as in `Wires.arguments`; an input that has no name gets that of its place there.

        Raises:
            InvalidInput: two different inputs or two outputs have the same name, or an output is none.
        """
        all_inputs, all_arguments = list(inputs), list(arguments)
        written = dict.fromkeys(map(_written, outputs))
        for number, value in enumerate(all_arguments):
            if _input_name(all_inputs, value) or _data_of(value) in written:
                continue
            if isinstance(value, OutputFileDatasetConfig | OutputTabularDatasetConfig):
                written[_written(value)] = None
            elif isinstance(value, Input):
                all_inputs += named([value], "argument", number, all_inputs)
        _check_names(all_inputs)
        return cls(all_inputs, _output_names(written), all_arguments)

    def input_documents(self, around: Surroundings) -> dict[str, dict[str, Any]]:
        """The inputs as in a job file, by name."""
        return {each.name: each.fields(around) for each in self.inputs}

    def output_documents(self) -> dict[str, dict[str, Any]]:
        """The outputs as in a job file, by name."""
        return {name: data.fields(name) for data, name in self.outputs.items()}

    def argument_documents(self, around: Surroundings) -> list[Any]:
        """The arguments as in a job file.

        Raises:
            InvalidInput: one is the output of another step and no input of this one, or of a type that has no text.
        """
        return [self.argument(value, around, f"/arguments/{number}") for number, value in enumerate(self.arguments)]

    def reads(self) -> list[StepData]:
        """Return what other steps write, and this one reads."""
        return [each.data for each in self.inputs if each.data is not None]

    def possible_parameters(self) -> list[Any]:
        """Return what may be a pipeline parameter: arguments, and data of inputs."""
        return self.arguments + [each.parameter for each in self.inputs]

    def argument(self, value: Any, around: Surroundings, pointer: str) -> str | int | float:
        """An argument, or anything that stands for a path, as in a job file.

        Args:
            pointer: its place, for errors.

        Raises:
            InvalidInput: as of `argument_documents`.
        """
        from parallelrun_core.storage.supported import absolute_path

        if (name := _input_name(self.inputs, value)) is not None:
            return f"${{{{inputs.{name}}}}}"
        if (data := _data_of(value)) is not None:
            if data not in self.outputs:
                message = f"{data.name} is neither an input nor an output of this step"
                raise InvalidInput.at(pointer, message, "list it in inputs or outputs")
            return f"${{{{outputs.{self.outputs[data]}}}}}"
        if isinstance(value, Output):
            return absolute_path(checked_text(value.path or ".", pointer), Path.cwd())
        value = around.value(value)
        if not isinstance(value, str | int | float | Path):
            hint = "text, an int, a float, a path, data, or a PipelineParameter of one of these is"
            raise InvalidInput.at(pointer, f"{type(value).__name__} is no argument", hint)
        return value if isinstance(value, int | float) else checked_text(str(value), pointer)


class WiredStep(ReportsMissing):
    """A step of v1, which `Pipeline` puts into the order of what its steps read and write."""

    def __init__(self, name: str, wires: Wires) -> None:
        self.name = name
        self.wires = wires
        self.after: list[WiredStep] = []

    def run_after(self, step: WiredStep) -> None:
        """Begin only when that step has completed, though no data of it is needed.

        Raises:
            InvalidInput: it is no step.
        """
        self.after.append(checked_step(step, "/step"))

    def claim_outputs(self) -> None:
        """Become the step that writes these outputs, in place of one that was made before."""
        for data in self.wires.outputs:
            data.writer = self


def checked_step(step: Any, pointer: str = "/steps") -> WiredStep:
    """Return a step of a pipeline. Raises InvalidInput if it is none."""
    if not isinstance(step, WiredStep):
        hint = "a ParallelRunStep or a PythonScriptStep is one"
        raise InvalidInput.at(pointer, f"{type(step).__name__} is no step", hint)
    return step


def named(inputs: Iterable[Any], prefix: str, first: int = 0, others: Iterable[NamedInput] = ()) -> list[NamedInput]:
    """Return each input with its name; one that has none gets this prefix and its number, or the next that is free.

    Args:
        first: the number of the first input.
        others: inputs of the same step, which have names already.

    Raises:
        InvalidInput: one is no input.
    """
    sources = list(inputs)
    described = [_as_input(source, f"/{prefix}s/{number}") for number, source in enumerate(sources, first)]
    names = [each.name or (data.input_name if (data := _data_of(each)) else "") for each in described]
    names_in_use = {*names, *(each.name for each in others)}
    for place, name in enumerate(names):
        if not name:
            numbered = (f"{prefix}_{number}" for number in count(first + place))
            names[place] = next(free for free in numbered if free not in names_in_use)
            names_in_use.add(names[place])
    return [
        NamedInput(source, replace(each, name=name))
        for source, each, name in zip(sources, described, names, strict=True)
    ]


def _as_input(source: Any, pointer: str) -> Input:
    described = source.as_input() if isinstance(source, StepData) else source
    if isinstance(described, str | Path):
        described = Input(path=str(described))
    if not isinstance(described, Input):
        hint = "a path, an Input, or what another step writes; a PipelineParameter in a DatasetConsumptionConfig"
        raise InvalidInput.at(pointer, f"{type(described).__name__} is no input", hint)
    checked_text(str(described.path), pointer)
    return described


def _input_name(inputs: Iterable[NamedInput], value: Any) -> str | None:
    """The name of the input that an argument stands for: itself, or one of the same data, read as it says.

    Of several of these it is the one that has its name, or else one that is read in the same steps.
    """
    for each in inputs:
        if each.source is value and not isinstance(value, str):
            return each.name
    if (data := _data_of(value)) is None:
        return None
    needed = (value if isinstance(value, StepDataInput) else data.as_input()).fields()
    name = needed.pop("name", None)
    is_asked_for = name not in (data.input_name, data.output_name)
    of_it = [each for each in inputs if each.data is data and needed.items() <= _fields(each).items()]
    names = [each.name for each in of_it if _fields(each).get(_STEPS) == needed.get(_STEPS)]
    names += [each.name for each in of_it]  # as a table, and so in the same files
    return name if name in names else None if is_asked_for or not names else names[0]


def _fields(named_input: NamedInput) -> dict[str, Any]:
    return {"mode": MOUNT, **named_input.input.fields()}


def _check_names(inputs: Iterable[NamedInput]) -> None:
    """Raise InvalidInput if two different inputs have the same name."""
    meanings: dict[str, Any] = {}
    for each in inputs:
        meaning = (each.data, each.parameter, _fields(each))
        if meanings.setdefault(each.name, meaning) != meaning:
            hint = f"give one of them another name: {'as_input' if each.data else 'as_named_input'}(name)"
            raise InvalidInput.at(f"/inputs/{each.name}", f"there is an input {each.name!r} already", hint)


def _data_of(value: Any) -> StepData | None:
    data = value.data if isinstance(value, StepDataInput) else value
    return data if isinstance(data, StepData) else None


def _written(output: Any) -> StepData:
    if not isinstance(output, StepOutput):
        hint = "a PipelineData or an OutputFileDatasetConfig is one"
        raise InvalidInput.at("/outputs", f"{type(output).__name__} is no output of a step", hint)
    return output if isinstance(output, StepData) else output.data


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
