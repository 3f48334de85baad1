"""Values that an earlier step has written into a file: those of conditions, and of inputs that are values."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final

from parallelrun_core.errors import InvalidInput, NotFound, UnsafePath
from parallelrun_core.folder.disk_trouble import may_pass
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.pipelines.outputs import origin_of
from parallelrun_core.pipelines.standing import StepStanding
from parallelrun_core.spec.fields import of_type
from parallelrun_core.spec.later_inputs import StepInput, StepOutput
from parallelrun_core.spec.pipeline import PipelineSpec
from parallelrun_core.storage.path_rule import PathRule
from parallelrun_core.storage.stores import storage_of
from parallelrun_core.wire.states import StepState

_MOST_BYTES: Final = 64
_MOST_TEXT: Final = 1 << 20
_TRUTHS: Final = {"true": True, "false": False}


def truths(folder: JobFolder, spec: PipelineSpec, by_step: Mapping[str, StepStanding]) -> dict[StepOutput, bool]:
    """The values that conditions of waiting steps need, as far as the steps that make them have completed.

    One that can't be read is left out: the step that asks for it finds out why (`truth_of`).
    """
    values: dict[StepOutput, bool] = {}
    for name, standing in by_step.items():
        if standing.state is not StepState.WAITING:
            continue
        for condition in spec.steps[name].conditions:
            of = condition.of
            if isinstance(of, StepOutput) and of not in values and by_step[of.step].state is StepState.COMPLETED:
                try:
                    values[of] = truth_of(folder, of, by_step)
                except (InvalidInput, NotFound):
                    continue
    return values


def truth_of(folder: JobFolder, of: StepOutput, by_step: Mapping[str, StepStanding]) -> bool:
    """The value in an output of a step that has completed.

    Raises:
        InvalidInput, NotFound: there is none, or it can't be read, as the message says.
        OSError: it can't be read for now.
    """
    path, text = _read(folder, of, by_step, _MOST_BYTES)
    if (value := _TRUTHS.get(text.strip().lower())) is None:
        raise InvalidInput.at("", f"{_named(of)} is neither true nor false: {path}")
    return value


def literal_of(folder: JobFolder, of: StepInput, by_step: Mapping[str, StepStanding]) -> bool | int | float | str:
    """The value, in the type of the input, that is in an output of a step that has completed.

    Raises:
        InvalidInput, NotFound: there is none, or it can't be read, as the message says.
        OSError: it can't be read for now.
    """
    path, text = _read(folder, of, by_step, _MOST_TEXT + 1)
    if len(text) > _MOST_TEXT:
        raise InvalidInput.at("", f"{_named(of)} has more than {_MOST_TEXT:,} characters: {path}")
    try:
        return of_type(of.literal, text.strip("\r\n") if of.literal == "string" else text.strip())
    except (ValueError, OverflowError) as error:
        raise InvalidInput.at("", f"{_named(of)} is {text.strip()[:80]!r}, and no {of.literal}: {path}") from error


def _named(of: StepOutput) -> str:
    return f"the output {of.output!r} of the step {of.step!r}"


def _read(folder: JobFolder, of: StepOutput, by_step: Mapping[str, StepStanding], most_bytes: int) -> tuple[str, str]:
    origin = origin_of(JobFolder(folder.root, by_step[of.step].job_id), of.output)
    if not origin.is_gathered:
        path = origin.job.output_paths(origin.job.record().job_spec())[origin.output]
        return path, text_of_output(origin.job, origin.output, most_bytes, subject=_named(of))
    path = str(origin.job.outputs / origin.output)
    return path, _decoded(path, None, most_bytes, _named(of))


def text_of_output(maker: JobFolder, output: str, most_bytes: int, *, subject: str = "") -> str:
    """The text in an output of a job with mini-batches.

    Args:
        subject: what the output is called in messages.

    Raises:
        NotFound: it is no file, or can't be read.
        OSError: it can't be read for now.
    """
    record = maker.record()
    path = maker.output_paths(record.job_spec())[output]
    return _decoded(path, maker.path_rule(record), most_bytes, subject or f"the output {output!r}")


def _decoded(path: str, rule: PathRule | None, most_bytes: int, subject: str) -> str:
    try:
        return _text(path, rule, most_bytes).decode(errors="replace")
    except (FileNotFoundError, IsADirectoryError, UnsafePath) as error:
        raise NotFound(f"{subject} is no file: {path}") from error
    except OSError as error:
        if may_pass(error):
            raise
        raise NotFound(f"{subject} can't be read: {error.strerror or error}: {path}") from error


def _text(path: str, rule: PathRule | None, most_bytes: int) -> bytes:
    storage = storage_of(path)
    with storage.open(_only_file(path, rule) if storage.is_near else path, rule) as file:
        return file.read(most_bytes)


def _only_file(path: str, rule: PathRule | None) -> str:
    """The path, or, if it is a folder with one file, that file."""
    storage = storage_of(path)
    if not storage.is_folder(path):
        return path
    files = [folder + b"/" + name for folder, names in storage.files(path, rule=rule) for name in names]
    if len(files) != 1:
        raise NotFound(f"{path} holds {len(files)} files, and not the one that is true or false")
    return os.fsdecode(files[0])
