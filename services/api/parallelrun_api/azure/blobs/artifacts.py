"""The artifacts of a job as the client downloads them: its logs, what it has written to `outputs`, and MLflow's.

What a command writes to `outputs` of its working folder is among the job's own outputs, beside those that have a name.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from heapq import merge
from typing import Final

from parallelrun_api.azure.facade import Facade
from parallelrun_api.views.files import ServedFolder, ServedFolders
from parallelrun_core.answers.files import FileEntry
from parallelrun_core.errors import NotFound
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.folder.metrics import names_in
from parallelrun_core.layout import OUTPUTS
from parallelrun_core.pipelines.standing import standings
from parallelrun_core.spec import JobSpec
from parallelrun_core.spec.pipeline import PipelineSpec

_PREFIX: Final = "outputs"
"""What the paths of files begin with that are no logs."""


@dataclass(frozen=True, kw_only=True)
class Artifacts:
    """The files of a job that its client knows without the name of an output."""

    logs: ServedFolder
    tracked: ServedFolders
    """The artifacts of its run of MLflow; of a pipeline, the logs of its steps."""
    written: ServedFolder | None = None
    """The files that it has written to `outputs`; None: nobody can tell those from its other outputs."""
    named: frozenset[str] = frozenset()
    """Files and folders there that are outputs with a name."""

    def files(self, after: str = "") -> Iterator[FileEntry]:
        """The files, by path: those whose path comes after `after`."""
        return merge(
            self.logs.files(after), self.tracked.files(after), self._written(after), key=lambda entry: entry.path
        )

    def open(self, path: str) -> int:
        """Open a file; returns the file descriptor.

        Raises:
            NotFound, UnsafePath: as for a served folder.
        """
        if self.written is not None and path.startswith(f"{_PREFIX}/"):
            with suppress(NotFound):
                return self.written.open(path)
        try:
            return self.logs.open(path)
        except NotFound:
            return self.tracked.open(path)

    def _written(self, after: str) -> Iterator[FileEntry]:
        for entry in self.written.files(after) if self.written is not None else ():
            if entry.path.split("/")[1] not in self.named:
                yield entry


def artifacts_of(facade: Facade, job_id: str) -> Artifacts:
    """The artifacts of a job.

    Raises:
        NotFound: there is no such job.
    """
    folder = facade.context.jobs.folder(job_id)
    record = folder.record()
    anchor, names = folder.path.parent, facade.context.folder_names
    logs = ServedFolder(anchor=anchor, beneath=f"{job_id}/logs", names=names)
    if record.is_pipeline:
        return Artifacts(logs=logs, tracked=ServedFolders(tuple(_of_steps(facade, folder, record.pipeline_spec()))))
    tracked = ServedFolders(tuple(_tracked(facade, folder)))
    spec = record.job_spec()
    if spec.output:
        return Artifacts(logs=logs, tracked=tracked)
    below = _of_artifacts(spec)
    written = ServedFolder(anchor=anchor, beneath=f"{job_id}/{OUTPUTS}{below}", name=_PREFIX, names=names)
    return Artifacts(logs=logs, tracked=tracked, written=written, named=frozenset() if below else _named(spec))


def _tracked(facade: Facade, folder: JobFolder) -> Iterator[ServedFolder]:
    """The folders with the artifacts of each process."""
    anchor, beneath = folder.path.parent, "user/artifacts"
    for node in names_in(folder.logs, beneath):
        for process in names_in(folder.logs, f"{beneath}/{node}"):
            path = f"{folder.job_id}/logs/{beneath}/{node}/{process}"
            yield ServedFolder(anchor=anchor, beneath=path, names=facade.context.folder_names)


def _of_steps(facade: Facade, folder: JobFolder, spec: PipelineSpec) -> Iterator[ServedFolder]:
    """The logs of each step, below its name."""
    for name, standing in standings(folder, spec).items():
        if standing.job_id:
            beneath = f"{standing.job_id}/logs"
            yield ServedFolder(anchor=folder.path.parent, beneath=beneath, name=name, names=facade.context.folder_names)


def _of_artifacts(spec: JobSpec) -> str:
    """The folder below the job's outputs that has its artifacts alone; empty: they are beside its named outputs."""
    for name, output in spec.outputs.items():
        if output.has_artifacts and not output.path:
            return f"/{output.file_name or name}/{_PREFIX}"
    return ""


def _named(spec: JobSpec) -> frozenset[str]:
    names = {output.file_name or name for name, output in spec.outputs.items() if not output.path}
    return frozenset({*names, spec.append_row_file_name} if spec.writes_rows else names)
