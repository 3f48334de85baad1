"""Folders and files of a job's outputs: in its own folder, where it names a place, or in its steps'."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec

from parallelrun_api.views.files import ServedFolder, ServedFolders
from parallelrun_api.views.folder_names import FolderNames
from parallelrun_core.answers.files import OutputElsewhere
from parallelrun_core.errors import NotFound
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.folder.records import JobRecord
from parallelrun_core.pipelines.outputs import parts_of
from parallelrun_core.pipelines.standing import standings
from parallelrun_core.spec import JobSpec
from parallelrun_core.spec.pipeline_steps import last_steps
from parallelrun_core.storage.location import is_url
from parallelrun_core.storage.path_rule import PathRule, resolve
from parallelrun_core.wire.states import StepState


@dataclass
class _Places:
    folders: list[ServedFolder] = field(default_factory=list)
    elsewhere: list[OutputElsewhere] = field(default_factory=list)

    def below(self, name: str) -> _Places:
        return _Places(
            [replace(each, name=f"{name}/{each.name}".rstrip("/")) for each in self.folders],
            [msgspec.structs.replace(each, output=f"{name}/{each.output}".rstrip("/")) for each in self.elsewhere],
        )


class ServedOutputs:
    """Finds the outputs of jobs.

    Args:
        rule: what jobs may write, now: one may have put a link there since it was submitted.
    """

    def __init__(self, rule: PathRule, names: FolderNames) -> None:
        self._rule = rule
        self._names = names

    def of(self, folder: JobFolder) -> ServedFolders:
        """All outputs of a job.

        Raises:
            NotFound: there is no such job, or it has none.
        """
        places = self._of(folder, folder.record())
        if not places.folders and not places.elsewhere:
            raise NotFound(f"Job {folder.job_id} has no output file.")
        return ServedFolders(tuple(places.folders), tuple(places.elsewhere))

    def _of(self, folder: JobFolder, record: JobRecord) -> _Places:
        return self._of_pipeline(folder, record) if record.is_pipeline else self._of_job(folder, record.job_spec())

    def _of_pipeline(self, folder: JobFolder, record: JobRecord) -> _Places:
        pipeline, places = record.pipeline_spec(), _Places()
        for name in pipeline.outputs:
            with suppress(NotFound):  # nobody has made it yet
                for part in parts_of(folder, name):
                    shown_name = f"{name}/{part.name}".rstrip("/")
                    self._add(places, self._named(part.job, part.job.record().job_spec(), part.output, shown_name))
        by_step = standings(folder, pipeline)
        for step in last_steps(pipeline):
            if (standing := by_step[step]).state is not StepState.SKIPPED and standing.job_id:
                with suppress(NotFound):
                    job = JobFolder(folder.root, standing.job_id)
                    self._add(places, self._of(job, job.record()).below(step))
        return places

    @staticmethod
    def _add(places: _Places, more: _Places) -> None:
        places.folders += more.folders
        places.elsewhere += more.elsewhere

    def _of_job(self, folder: JobFolder, spec: JobSpec) -> _Places:
        places = _Places()
        for name, output in spec.outputs.items():
            if output.path or spec.output:  # else it is in the job's own folder
                shown_name = name if output.path or output.type == "uri_folder" else ""
                self._add(places, self._named(folder, spec, name, shown_name))
        if not spec.output:
            places.folders.append(self._own(folder))
        elif is_url(spec.output):
            rows = spec.writes_rows and not spec.append_row_to
            places.elsewhere.append(OutputElsewhere(output="", url=folder.output_file(spec) if rows else spec.output))
        elif spec.writes_rows and not spec.append_row_to:
            places.folders += self._at("uri_file", Path(folder.output_file(spec)))
        return places

    def _named(self, folder: JobFolder, spec: JobSpec, output: str, shown_name: str) -> _Places:
        """Return one of a job's named outputs, below a name."""
        output_fields, path = spec.outputs[output], folder.output_paths(spec)[output]
        if is_url(path):
            return _Places(elsewhere=[OutputElsewhere(output=shown_name or output, url=path)])
        if output_fields.path or spec.output:
            return _Places([*self._at(output_fields.type, Path(path), shown_name)])
        own_folder = self._own(folder)
        if output_fields.type == "uri_file":
            return _Places([replace(own_folder, only=os.path.basename(path), name=shown_name)])
        return _Places([replace(own_folder, beneath=f"{own_folder.beneath}/{os.path.basename(path)}", name=shown_name)])

    def _own(self, folder: JobFolder) -> ServedFolder:
        return ServedFolder(anchor=folder.path.parent, beneath=f"{folder.job_id}/outputs", names=self._names)

    def _at(self, kind: str, path: Path, name: str = "") -> Iterator[ServedFolder]:
        """A file or folder that a job has named, unless it leads to where jobs may not write."""
        # The job may have put a link there since it was submitted, so it is resolved and checked again; a link that
        # comes later is found when the path is walked from the top.
        only = path.name if kind == "uri_file" else ""
        try:
            real = resolve(os.fsencode(path.parent if only else path))
        except OSError:
            return
        if self._rule.is_open(real, is_written=True) and (only or not self._rule.holds_closed(real)):
            beneath = os.fsdecode(real).lstrip("/")
            yield ServedFolder(anchor=Path("/"), beneath=beneath, only=only, name=name, names=self._names)
