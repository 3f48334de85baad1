"""The places where a run on this machine writes: checked and claimed before it starts, filled when its job has
completed."""

from __future__ import annotations

import os
import posixpath
import secrets
from datetime import datetime
from pathlib import Path

from parallelrun.embedded import earlier_run
from parallelrun.embedded.far_places import is_object
from parallelrun.embedded.run_folder import RunFolder
from parallelrun.local_folder import place_for_results
from parallelrun_core.errors import InvalidInput
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.intake.prepared import named
from parallelrun_core.spec import JobSpec
from parallelrun_core.storage.globs import Pattern
from parallelrun_core.storage.location import is_url
from parallelrun_core.storage.stores import storage_of


class RunPlaces:
    """The folder of one run, and the file with a path of its own, or the object, that its rows may replace.

    Args:
        spec: the job, as the user gave it.
        folder: gets its outputs and logs, named in any form of a location; by default the job's own, else `NAME-TIME`
            in the current folder. If it is in an object store, its outputs go there, and its logs into `NAME-TIME`.
        overwrite: replace what an earlier run has left there.
        earlier: the job of an earlier run, which this one takes over from.

    Raises:
        InvalidInput: the job would read what it writes, or overwrite what is not to be replaced. Nothing has changed.
    """

    def __init__(
        self, spec: JobSpec, *, folder: str | Path | None, overwrite: bool, earlier: JobFolder | None = None
    ) -> None:
        named = place_for_results(folder, "--output") if folder else spec.output
        store = named if is_url(named) else ""
        place = Path(default_folder(spec.name) if store else named or default_folder(spec.name)).absolute()
        check_place(place, earlier, overwrite=overwrite)
        check_apart(store or str(place), spec)
        self.spec = spec.model_copy(update={"output": store})
        """The job as it is to be submitted: its outputs are in a store, or in its own folder, and then handed over."""
        self._replaced = _replaced(self.spec, overwrite=overwrite)
        own_outputs = _own_outputs(JobFolder(Path(), ""), self.spec)
        if self._replaced:
            self.spec = _with_rows_in(self.spec, _beside(self._replaced))
        self.folder = RunFolder(place, outputs=[path.name for path in own_outputs], overwrite=overwrite)

    def hand_over_outputs(self, job: JobFolder) -> tuple[str, dict[str, str]]:
        """Put the outputs of the completed job in their place; those with a path of their own, or in a store, are there
        already.

        Returns:
            The file or object with its rows, if there is one, and what the script itself has written, by name.

        Raises:
            InvalidInput: something else has been put there meanwhile. What has not been moved is still in the job.
        """
        # Everything in it: scripts also write files that are no named output (`EntryScript().output_dir`). But not what
        # a concatenator was writing when it died, which the cluster may not have removed before it stopped.
        spec = named(self.spec, job.job_id)
        rows = job.output_file(spec)
        unfinished = [] if is_url(rows) else storage_of(rows).unfinished(rows, job.job_id)
        entries = sorted(path for path in job.outputs.iterdir() if str(path) not in unfinished)
        moved = {path: self.folder.hand_over_output(path) for path in entries}
        if self._replaced:
            storage_of(rows).replace(rows, self._replaced)
        self.folder.mark_handed_over()

        def place(path: str) -> str:
            if path == rows and self._replaced:
                return self._replaced
            old = next((each for each in moved if not is_url(path) and Path(path).is_relative_to(each)), None)
            return path if old is None else str(moved[old] / Path(path).relative_to(old))

        job_outputs = job.output_paths(spec).items()
        outputs = {name: place(path) for name, path in job_outputs if name != spec.append_row_to}
        if not spec.writes_rows:
            return "", outputs
        self.folder.correct_log("job_result.txt", rows, place(rows))
        return place(rows), outputs


def default_folder(name: str) -> str:
    """The name of a folder for the results of a run that starts now."""
    return f"{name.replace(' ', '_')}-{datetime.now().astimezone():%Y%m%d-%H%M%S}"


def _own_outputs(folder: JobFolder, spec: JobSpec) -> list[Path]:
    """The outputs directly in the job's own folder."""
    paths = [*folder.output_paths(spec).values()]
    if spec.writes_rows and not spec.append_row_to:
        paths.append(folder.output_file(spec))
    return [Path(path) for path in paths if not is_url(path) and Path(path).parent == folder.outputs]


def _replaced(spec: JobSpec, *, overwrite: bool) -> str:
    """The file with a path of its own, or the object, that the rows are to replace; empty if it isn't there. Only when
    the job has completed: an earlier output is better than none.

    Raises:
        InvalidInput: it is there, and is not to be replaced, or is no file.
    """
    target = JobFolder(Path(), "").output_file(spec)
    has_path = bool(spec.append_row_to and spec.outputs[spec.append_row_to].path)
    if not spec.writes_rows or not (has_path or is_url(target)):
        return ""
    where = f"/outputs/{spec.append_row_to}/path" if has_path else "--output"
    if is_url(target) and (trouble := storage_of(target).output_trouble(target, is_file=True)):
        raise InvalidInput.at(where, *trouble)
    try:
        is_there = is_object(target) if is_url(target) else os.path.lexists(target)
    except (OSError, ValueError) as error:
        raise InvalidInput.at(where, f"{target} can't be asked for: {error}") from error
    if not is_there:
        return ""
    if not is_url(target) and (os.path.islink(target) or not os.path.isfile(target)):
        raise InvalidInput.at(where, f"{target} is there already, and is no file")
    if not overwrite:
        raise InvalidInput.at(where, f"{target} is there already", "name another file, or replace it with --overwrite")
    return target


def _beside(target: str) -> str:
    """A name for what is to take a file's place; how it ends is what the file's format depends on."""
    folder, name = posixpath.split(target)
    return f"{folder}/.parallelrun-{secrets.token_hex(6)}{posixpath.splitext(name)[1]}"


def _with_rows_in(spec: JobSpec, file: str) -> JobSpec:
    """The job with its rows in another file of the same folder."""
    name = spec.append_row_to
    if not name or spec.outputs[name].type == "uri_folder":
        return spec.model_copy(update={"append_row_file_name": posixpath.basename(file)})
    changed = spec.outputs[name].model_copy(update={"path": file})
    return spec.model_copy(update={"outputs": {**spec.outputs, name: changed}})


def check_place(place: Path, earlier: JobFolder | None, *, overwrite: bool) -> None:
    """Check that results can be put into a folder, and that nothing of an earlier run is lost by that.

    Raises:
        InvalidInput: it is a file, or below one; it has the earlier run in it, or finished work of another one.
    """
    existing = next(each for each in (place, *place.parents) if each.exists())
    if not existing.is_dir():
        raise InvalidInput.at("--output", f"{existing} is a file, and a folder is needed", "name another one")
    if earlier is not None and earlier.path.is_relative_to(place):
        raise InvalidInput.at("--output", f"{place} is the folder of the earlier run", "name another folder")
    if not overwrite:
        earlier_run.check_nothing_is_lost(place)


def check_apart(place: str, spec: JobSpec) -> None:
    """Check that a job doesn't read what it or an earlier run writes.

    Raises:
        InvalidInput: it would.
    """
    for path in spec.data_paths():
        if _is_part_of(place, path):
            raise InvalidInput.at("--output", f"{place} is part of the job's own input {path}", "name another folder")
    if is_url(place):
        return
    code, folder = Path(spec.code).resolve(), Path(place)
    # Of the code, all but the folders of runs is taken: with this one, the script would be left out.
    if code in folder.resolve().parents and (code / spec.entry_script).is_relative_to(folder.resolve()):
        raise InvalidInput.at("--output", f"{folder} holds the job's own entry script", "name another folder")


def _is_part_of(place: str, path: str) -> bool:
    """Return whether files in a folder belong to an input: a folder, a file, or a pattern as masters understand it."""
    fixed, pattern = storage_of(path).split(path)
    if is_url(place) != is_url(fixed):
        return False
    folder, start = (
        Path(storage_of(each).identity(each)) if is_url(each) else Path(each).resolve() for each in (place, fixed)
    )
    if not folder.is_relative_to(start):
        return False
    return not pattern or Pattern(pattern).is_possible_below(folder.relative_to(start).parts)
