"""Begins a step: decides what job runs it, records that, and lets the job run."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeVar

import msgspec

from parallelrun_core.errors import InvalidInput, NotFound
from parallelrun_core.folder.job_folder import JobFolder, JobRecord, Parent
from parallelrun_core.ids import job_id_from
from parallelrun_core.launching import launch
from parallelrun_core.path_rule import Places
from parallelrun_core.pipelines.outputs import job_of_output, output_path
from parallelrun_core.pipelines.records import Action, StepRecord, write_record
from parallelrun_core.pipelines.standing import Standing
from parallelrun_core.service import failpoints
from parallelrun_core.spec import JobSpec, PipelineSpec
from parallelrun_core.spec.fields import Input, Output
from parallelrun_core.spec.pipeline import PipelineOutput, Step, StepInput, StepOutput
from parallelrun_core.storage.stores import storage_of
from parallelrun_master.pipelines.truths import truth_of
from parallelrun_master.policy.next_steps import Skip

if TYPE_CHECKING:
    from parallelrun_core.store.connection import Redis
    from parallelrun_master.pipelines.reports import PipelineReports


AnyOutput = TypeVar("AnyOutput", Output, PipelineOutput)


class Steps:
    """Begins the steps of one pipeline, in one generation of it."""

    def __init__(
        self,
        redis: Redis,
        folder: JobFolder,
        record: JobRecord,
        spec: PipelineSpec,
        reports: PipelineReports,
        *,
        generation: int,
    ) -> None:
        self._redis = redis
        self._folder = folder
        self._record = record
        self._spec = spec
        self._reports = reports
        self._generation = generation

    def skip(self, name: str, skip: Skip) -> None:
        """Record that a step isn't run."""
        self._decide(name, "skip", why=skip.why, is_failure=skip.is_failure)

    def begin(self, name: str, known: Mapping[str, Standing]) -> None:
        """Run a step that has all that it needs."""
        try:
            job = self._job(name, known)
        except (InvalidInput, NotFound) as error:
            self._decide(name, "fail", why=_in_words(error))
            return
        made = {each: known[each].made for each in sorted(self._spec.steps[name].needs())}
        record = self._decide(name, "start", job=job.job_id, upon=made)
        failpoints.reach("step.decided")
        self.carry_out(record, known)

    def carry_out(self, record: StepRecord, known: Mapping[str, Standing]) -> None:
        """Do what was decided; again, it changes nothing but to finish what was interrupted."""
        if record.action == "start":
            launch(self._redis, self._folder.root, self._job(record.step, known, record.generation))
            failpoints.reach("step.launched")

    def is_to_be_reopened(self, standing: Standing) -> bool:
        """Whether it was decided that its job goes on, and that has not happened yet."""
        record = standing.record
        if record is None or record.action != "continue":
            return False
        return JobFolder(self._folder.root, record.job).generation() < record.job_generation

    def _decide(
        self,
        name: str,
        action: Action,
        *,
        job: str = "",
        upon: dict[str, str] | None = None,
        why: str = "",
        is_failure: bool = False,
    ) -> StepRecord:
        record = StepRecord(
            step=name,
            generation=self._generation,
            at=time.time(),
            action=action,
            job=job,
            upon=upon or {},
            why=why,
            is_failure=is_failure,
        )
        return write_record(self._folder, record)

    def _job(self, name: str, known: Mapping[str, Standing], generation: int | None = None) -> JobRecord:
        """The job that runs a step.

        Raises:
            InvalidInput, NotFound: there can't be one, as the message says.
        """
        step = self._spec.steps[name]
        for condition in step.conditions:
            if isinstance(condition.of, StepOutput):
                truth_of(self._folder, condition.of, known)
        paths = self._paths(step, known)
        spec = self._with_outputs(step, paths)
        parent = self._record
        return JobRecord(
            job_id=job_id_from(parent.job_id, name, str(self._generation if generation is None else generation)),
            submitted=time.time(),
            code=step.code,
            spec=spec.model_dump(mode="json"),
            notes=[],
            places=_places(parent.places, self._folder, paths),
            parent=Parent(job_id=parent.job_id, step=name, owner=parent.owner),
        )

    def _paths(self, step: Step, known: Mapping[str, Standing]) -> dict[str, str]:
        """The paths of the inputs that other steps have made."""
        paths: dict[str, str] = {}
        for name, given in step.inputs_from.items():
            if isinstance(given, StepInput):
                path = output_path(JobFolder(self._folder.root, known[given.step].job_id), given.output)
                storage = storage_of(path)
                if storage.is_near and not storage.is_there(path):
                    what = f"the output {given.output!r} of the step {given.step!r}, job {known[given.step].job_id}"
                    raise NotFound(f"its input {name!r} is {what}, and there is nothing at {path}")
                paths[name] = path
                continue
            own = self._spec.inputs.get(given.input)
            if not isinstance(own, Input):
                raise NotFound(f"its input {name!r} is the pipeline's input {given.input!r}, which has no path")
            paths[name] = own.path
        return paths

    def _with_outputs(self, step: Step, paths: Mapping[str, str]) -> JobSpec | PipelineSpec:
        """The spec of the job, with outputs where those of the pipeline are to be."""
        outputs = self._spec.outputs
        given = {own: outputs[name].path for own, name in step.outputs_to.items() if name in outputs}
        if step.type == "pipeline":
            pipeline = step.pipeline_spec(paths)
            inner = {name: _at(each, given.get(name, "")) for name, each in pipeline.outputs.items()}
            return pipeline.model_copy(update={"outputs": inner})
        spec = step.job_spec(paths)
        own = {name: _at(each, given.get(name, "")) for name, each in spec.outputs.items()}
        return spec.model_copy(update={"outputs": own})


def _at(output: AnyOutput, path: str) -> AnyOutput:
    return output.model_copy(update={"path": path}) if path and not output.path else output


def _places(places: Places | None, folder: JobFolder, paths: Mapping[str, str]) -> Places | None:
    """Where the paths of a step's job may be: where those of the pipeline may, and in outputs that are its inputs."""
    if places is None:
        return None
    made_by = {job for path in paths.values() if (job := job_of_output(folder.root, path))}
    return msgspec.structs.replace(places, jobs=sorted(made_by.union(places.jobs)))


def _in_words(error: InvalidInput | NotFound) -> str:
    if isinstance(error, InvalidInput):
        return "; ".join(f"{each.pointer}: {each.message}" if each.pointer else each.message for each in error.problems)
    return str(error)
