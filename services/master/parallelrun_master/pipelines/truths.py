"""What the conditions of steps are about: a truth value in a file that an earlier step has written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from parallelrun_core.errors import InvalidInput, NotFound, UnsafePath
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.path_rule import PathRule
from parallelrun_core.pipelines.outputs import output_path
from parallelrun_core.pipelines.standing import Standing
from parallelrun_core.spec.pipeline import PipelineSpec, StepOutput
from parallelrun_core.states import StepState
from parallelrun_core.storage.stores import storage_of

_MOST_BYTES: Final = 64
_TRUTHS: Final = {"true": True, "false": False}


def truths(folder: JobFolder, spec: PipelineSpec, known: Mapping[str, Standing]) -> dict[StepOutput, bool]:
    """The values that conditions of waiting steps need, as far as the steps that make them have completed.

    One that can't be read is left out: the step that asks for it finds out why (`truth_of`).
    """
    values: dict[StepOutput, bool] = {}
    for name, standing in known.items():
        if standing.state is not StepState.WAITING:
            continue
        for condition in spec.steps[name].conditions:
            of = condition.of
            if isinstance(of, StepOutput) and of not in values and known[of.step].state is StepState.COMPLETED:
                try:
                    values[of] = truth_of(folder, of, known)
                except (InvalidInput, NotFound):
                    continue
    return values


def truth_of(folder: JobFolder, of: StepOutput, known: Mapping[str, Standing], rule: PathRule | None = None) -> bool:
    """The value in an output of a step that has completed.

    Raises:
        InvalidInput, NotFound: there is none, as the message says.
        OSError: it can't be read for now.
    """
    job = JobFolder(folder.root, known[of.step].job_id)
    path = output_path(job, of.output)
    try:
        with storage_of(path).open(_only_file(path), rule) as file:
            text = file.read(_MOST_BYTES).decode(errors="replace").strip()
    except (FileNotFoundError, IsADirectoryError, UnsafePath) as error:
        raise NotFound(f"the output {of.output!r} of the step {of.step!r} is no file: {path}") from error
    if (value := _TRUTHS.get(text.lower())) is None:
        raise InvalidInput.at("", f"the output {of.output!r} of the step {of.step!r} is neither true nor false: {path}")
    return value


def _only_file(path: str) -> str:
    """The path, or, if it is a folder with one file, that file."""
    storage = storage_of(path)
    if not storage.is_near or not storage.is_folder(path):
        return path
    files = [name for folder, names in storage.files(path) for name in ((folder + b"/" + each) for each in names)]
    if len(files) != 1:
        raise NotFound(f"{path} holds {len(files)} files, and not the one that is true or false")
    return files[0].decode()
