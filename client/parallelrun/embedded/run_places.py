"""Where a run on this machine writes: checked and claimed before it starts, filled when its job has completed."""

from __future__ import annotations

import os
import secrets
from datetime import datetime
from pathlib import Path

from parallelrun.embedded import earlier_run
from parallelrun.embedded.run_folder import RunFolder
from parallelrun.local_folder import local_folder
from parallelrun_core.errors import InvalidInput
from parallelrun_core.folder.files import sync_folder
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.spec import JobSpec
from parallelrun_core.storage.globs import Pattern
from parallelrun_core.storage.stores import storage_of


class RunPlaces:
    """The folder of one run, and the file with a path of its own that its rows may replace.

    Args:
        spec: the job, as the user gave it.
        folder: gets its outputs and logs, named in any form of a location; by default the job's own, else `NAME-TIME`
            in the current folder.
        overwrite: replace what an earlier run has left there.
        earlier: the job of an earlier run, which this one takes over from.

    Raises:
        InvalidInput: the job would read what it writes, or overwrite what is not to be replaced. Nothing has changed.
    """

    def __init__(
        self, spec: JobSpec, *, folder: str | Path | None, overwrite: bool, earlier: JobFolder | None = None
    ) -> None:
        place = (
            local_folder(folder, "--output") if folder else Path(spec.output or _default_folder(spec.name))
        ).absolute()
        _check_apart(place, spec)
        if earlier is not None and earlier.path.is_relative_to(place):
            raise InvalidInput.at("--output", f"{place} is the folder of the earlier run", "name another folder")
        if not overwrite:
            earlier_run.check_nothing_is_lost(place)
        self._replaced = _replaced(spec, overwrite=overwrite)
        self.spec = spec.model_copy(update={"output": ""})
        """The job as it is to be submitted: its outputs are in its own folder, from which they are handed over."""
        own_outputs = _own_outputs(JobFolder(Path(), ""), self.spec)
        if self._replaced is not None:
            self.spec = _with_rows_in(self.spec, _beside(self._replaced))
        self.folder = RunFolder(place, outputs=[path.name for path in own_outputs], overwrite=overwrite)

    def hand_over_outputs(self, job: JobFolder) -> tuple[Path | None, dict[str, Path]]:
        """Put the outputs of the completed job in their place; those with a path of their own are there already.

        Returns:
            The file with its rows, if there is one, and what the script itself has written, by name.

        Raises:
            InvalidInput: something else has been put there meanwhile. What has not been moved is still in the job.
        """
        # Everything in it: scripts also write files that are no named output (`EntryScript().output_dir`). But not what
        # a concatenator was writing when it died, which the cluster may not have removed before it stopped.
        target = str(job.output_file(self.spec))
        unfinished = storage_of(target).unfinished(target, job.job_id)
        made = sorted(path for path in job.outputs.iterdir() if str(path) not in unfinished)
        moved = {path: self.folder.hand_over_output(path) for path in made}
        if self._replaced is not None:
            moved[job.output_file(self.spec)] = self._replaced
            job.output_file(self.spec).replace(self._replaced)
            sync_folder(self._replaced.parent)
        self.folder.mark_handed_over()

        def place(path: Path) -> Path:
            return next((new / path.relative_to(old) for old, new in moved.items() if path.is_relative_to(old)), path)

        named = job.output_paths(self.spec).items()
        outputs = {name: place(Path(path)) for name, path in named if name != self.spec.append_row_to}
        if not self.spec.writes_rows:
            return None, outputs
        rows = job.output_file(self.spec)
        self.folder.correct_log("job_result.txt", rows, place(rows))
        return place(rows), outputs


def _default_folder(name: str) -> str:
    return f"{name.replace(' ', '_')}-{datetime.now().astimezone():%Y%m%d-%H%M%S}"


def _own_outputs(folder: JobFolder, spec: JobSpec) -> list[Path]:
    """The outputs directly in the job's own folder."""
    paths = [Path(path) for path in folder.output_paths(spec).values()]
    if spec.writes_rows and not spec.append_row_to:
        paths.append(folder.output_file(spec))
    return [path for path in paths if path.parent == folder.outputs]


def _replaced(spec: JobSpec, *, overwrite: bool) -> Path | None:
    """The file with a path of its own that the rows are to replace, if it is there. Only when the job has completed: an
    earlier output is better than none.

    Raises:
        InvalidInput: it is there, and is not to be replaced, or is no file.
    """
    if not spec.writes_rows or not spec.append_row_to or not spec.outputs[spec.append_row_to].path:
        return None
    target = JobFolder(Path(), "").output_file(spec)
    if not os.path.lexists(target):
        return None
    if target.is_symlink() or not target.is_file():
        raise InvalidInput.at(f"/outputs/{spec.append_row_to}/path", f"{target} is there already, and is no file")
    if not overwrite:
        where, hint = f"/outputs/{spec.append_row_to}/path", "name another file, or replace it with --overwrite"
        raise InvalidInput.at(where, f"{target} is there already", hint)
    return target


def _beside(target: Path) -> Path:
    """A name for what is to take a file's place; how it ends is what the file's format depends on."""
    return target.with_name(f".parallelrun-{secrets.token_hex(6)}{target.suffix}")


def _with_rows_in(spec: JobSpec, file: Path) -> JobSpec:
    """The job with the rows of its named output in another file of the same folder."""
    name = spec.append_row_to
    output = spec.outputs[name]
    if output.type == "uri_folder":
        return spec.model_copy(update={"append_row_file_name": file.name})
    changed = output.model_copy(update={"path": str(file)})
    return spec.model_copy(update={"outputs": {**spec.outputs, name: changed}})


def _check_apart(folder: Path, spec: JobSpec) -> None:
    """Check that the job doesn't read what it or an earlier run writes. Raises InvalidInput."""
    for path in spec.data_paths():
        if _is_part_of(folder.resolve(), path):
            raise InvalidInput.at("--output", f"{folder} is part of the job's own input {path}", "name another folder")
    code = Path(spec.code).resolve()
    # Of the code, all but the folders of runs is taken: with this one, the script would be left out.
    if code in folder.resolve().parents and (code / spec.entry_script).is_relative_to(folder.resolve()):
        raise InvalidInput.at("--output", f"{folder} holds the job's own entry script", "name another folder")


def _is_part_of(folder: Path, path: str) -> bool:
    """Whether files in a folder belong to an input: a folder, a file, or a pattern as masters understand it."""
    fixed, pattern = storage_of(path).split(path)
    start = Path(fixed).resolve()
    if not folder.is_relative_to(start):
        return False
    return not pattern or Pattern(pattern).is_possible_below(folder.relative_to(start).parts)
