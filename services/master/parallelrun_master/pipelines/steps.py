"""Begins a step: decides what job runs it, records that, and lets the job run."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypedDict, Unpack

import msgspec

from parallelrun_core.errors import Conflict, InvalidInput, NotFound
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.folder.records import JobRecord, Parent, Reopening
from parallelrun_core.ids import job_id_from
from parallelrun_core.intake.launching import launch, register
from parallelrun_core.intake.reopening import let_go_on, reopen
from parallelrun_core.pipelines.outputs import SkippedOutput, job_of_output, jobs_of_turns, output_path
from parallelrun_core.pipelines.records import Action, StepRecord, write_record
from parallelrun_core.pipelines.standing import StepStanding, is_upon
from parallelrun_core.pipelines.turns import with_items
from parallelrun_core.service import failpoints
from parallelrun_core.spec import JobSpec, PipelineSpec
from parallelrun_core.spec.fields import Input, ValueInput
from parallelrun_core.spec.later_inputs import StepInput, StepOutput
from parallelrun_core.spec.pipeline import Step
from parallelrun_core.spec.pipeline_steps import with_places
from parallelrun_core.storage.path_rule import Places
from parallelrun_core.storage.stores import storage_of
from parallelrun_core.store.registry import Registry
from parallelrun_core.store.rq.wake import ask_for_leader
from parallelrun_core.wire.states import JobState
from parallelrun_master.pipelines.condition_values import literal_of, truth_of
from parallelrun_master.pipelines.reuse import finished_before, reuse_key
from parallelrun_master.policy.next_steps import SkipStep

if TYPE_CHECKING:
    from parallelrun_core.store.connection import Redis
    from parallelrun_master.pipelines.reports import PipelineReports


_FOR_GOOD: Final = ("EMPTY_INPUT", "JOB_DAMAGED")
"""Failures that a job keeps however often it goes on; another one may have better luck."""


class _Decision(TypedDict, total=False):
    """The fields of `StepRecord` that depend on what is decided."""

    job: str
    job_generation: int
    retry_failed: bool
    upon: dict[str, str]
    key: str
    why: str
    is_failure: bool


@dataclass(eq=False)
class Steps:
    """Begins the steps of one pipeline, in one generation of it.

    Args:
        check_turn: raises `Fenced` when the pipeline is no longer the caller's to lead.
    """

    redis: Redis
    folder: JobFolder
    record: JobRecord
    spec: PipelineSpec
    """The pipeline, with those turns of a loop that there are by now."""
    reports: PipelineReports
    check_turn: Callable[[], object]
    generation: int
    is_pending: bool = field(default=False, init=False)
    """Something could not be done yet that nobody will wake the pipeline for."""

    def __post_init__(self) -> None:
        self._reopening = self.folder.reopenings()[-1] if self.generation else None

    def skip(self, name: str, skip: SkipStep) -> None:
        """Record that a step isn't run."""
        self._decide(name, "skip", why=skip.why, is_failure=skip.is_failure)

    def begin(self, name: str, by_step: Mapping[str, StepStanding]) -> None:
        """Run a step that has all that it needs, or let its job of an earlier generation go on."""
        earlier = by_step[name]
        if earlier.record is not None and self._can_go_on(name, earlier, by_step):
            record = self._decide(
                name,
                "continue",
                job=earlier.job_id,
                job_generation=earlier.job_generation + 1,
                retry_failed=self._retries(name, earlier),
                upon=earlier.record.upon,
                key=earlier.record.key,
            )
        else:
            try:
                job = self._job(name, by_step)
            except SkippedOutput as error:
                self._decide(name, "skip", why=f"it needs what a step has not made: {error}")
                return
            except (InvalidInput, NotFound) as error:
                self._decide(name, "fail", why=_in_words(error))
                return
            record = self._started(name, job, by_step)
        failpoints.reach("step.decided")
        self.carry_out(record, by_step)

    def _started(self, name: str, job: JobRecord, by_step: Mapping[str, StepStanding]) -> StepRecord:
        """The decision to run a step, or to reuse what an equal one has made."""
        step = self.spec.steps[name]
        upon = {each: by_step[each].made for each in sorted(step.needs())}
        key = reuse_key(self.folder, step, job, by_step)
        earlier = finished_before(self.folder, job, key) if key and not self.spec.force_rerun else None
        if earlier is None:
            return self._decide(name, "start", job=job.job_id, upon=upon, key=key)
        why = "an equal step has made them: the same code, settings and inputs"
        return self._decide(
            name, "reuse", job=earlier.job_id, job_generation=earlier.generation, upon=upon, key=key, why=why
        )

    def carry_out(self, record: StepRecord, by_step: Mapping[str, StepStanding]) -> None:
        """Do what was decided; again, it changes nothing but to finish what was interrupted.

        Raises:
            Fenced: another turn has begun, which does it.
        """
        self.check_turn()
        child = JobFolder(self.folder.root, record.job)
        if record.action == "start" and not child.has_record:
            launch(self.redis, self.folder.root, self._job(record.step, by_step, record.generation))
        elif record.action == "start":
            register(self.redis, child)
            let_go_on(self.redis, child)
        elif record.action == "continue":
            self._continue(record, child)
        failpoints.reach("step.launched")

    def _continue(self, record: StepRecord, child: JobFolder) -> None:
        registry = Registry(self.redis)
        if child.generation() < record.job_generation:
            if registry.is_active(child.job_id):
                self.is_pending = True  # its last leader cleans up, and would do so with the new generation
                return
            result = child.result()
            reopening = Reopening(
                generation=record.job_generation,
                at=time.time(),
                retry_failed=record.retry_failed,
                retry_items=record.retry_failed and result is not None and bool(result.progress.items_failed),
                accept_changed_inputs=self._reopening is not None and self._reopening.accept_changed_inputs,
            )
            with suppress(Conflict):  # somebody else was faster
                reopen(registry, child, reopening)
                ask_for_leader(self.redis, child.job_id, attempt=f"again-{record.job_generation}")
                return
        let_go_on(self.redis, child)

    def _can_go_on(self, name: str, earlier: StepStanding, by_step: Mapping[str, StepStanding]) -> bool:
        """Return whether the job that ran a step in an earlier generation can make what is to be made now."""
        record, result = earlier.record, earlier.result
        if record is None or record.action not in ("start", "continue") or result is None:
            return False
        is_for_good = result.failure is not None and result.failure.code in _FOR_GOOD
        return not is_for_good and is_upon(record, self.spec, name, by_step)

    def _retries(self, name: str, earlier: StepStanding) -> bool:
        """Return whether what has failed in a job is tried again: of one that has failed, it is why."""
        retries = self._reopening is not None and self._reopening.retry_failed
        has_failed = earlier.result is not None and earlier.result.state is JobState.FAILED
        return retries or (has_failed and self.spec.steps[name].type != "pipeline")

    def _decide(self, name: str, action: Action, **decision: Unpack[_Decision]) -> StepRecord:
        """Record a decision; returns the one that counts."""
        self.check_turn()
        record = StepRecord(step=name, generation=self.generation, at=time.time(), action=action, **decision)
        return write_record(self.folder, record)

    def _job(self, name: str, by_step: Mapping[str, StepStanding], generation: int | None = None) -> JobRecord:
        """The job that runs a step.

        Raises:
            SkippedOutput: a condition has skipped the step of a nested pipeline that makes one of its inputs.
            InvalidInput, NotFound: there can't be one, as the message says.
        """
        step = self.spec.steps[name]
        for condition in step.conditions:
            if isinstance(condition.of, StepOutput):
                truth_of(self.folder, condition.of, by_step)
        values = self._input_values(step, by_step)
        spec: JobSpec | PipelineSpec
        if step.type == "pipeline":
            spec = with_places(self.spec, step, with_items(step.pipeline_spec(values)))
        else:
            spec = with_places(self.spec, step, step.job_spec(values))
        parent = self.record
        return JobRecord(
            job_id=job_id_from(parent.job_id, name, str(self.generation if generation is None else generation)),
            submitted=time.time(),
            code=step.code,
            spec=spec.model_dump(mode="json"),
            notes=[],
            places=_places(
                parent.places, self.folder, [values[each] for each in values if not step.inputs_from[each].literal]
            ),
            parent=Parent(job_id=parent.job_id, step=name, owner=parent.outermost),
            owner=parent.owner,
        )

    def _input_values(self, step: Step, by_step: Mapping[str, StepStanding]) -> dict[str, Any]:
        """The paths, and the values, of the inputs that other steps have made."""
        values: dict[str, Any] = {}
        for name, source in step.inputs_from.items():
            if isinstance(source, StepInput):
                values[name] = (
                    literal_of(self.folder, source, by_step) if source.literal else self._path(name, source, by_step)
                )
                continue
            pipeline_input = self.spec.inputs.get(source.input)
            if isinstance(pipeline_input, ValueInput if source.literal else Input):
                values[name] = getattr(pipeline_input, "value" if source.literal else "path")
                continue
            has = "value" if source.literal else "path"
            raise NotFound(f"its input {name!r} is the pipeline's input {source.input!r}, which has no {has}")
        return values

    def _path(self, name: str, source: StepInput, by_step: Mapping[str, StepStanding]) -> str:
        path = output_path(JobFolder(self.folder.root, by_step[source.step].job_id), source.output)
        storage = storage_of(path)
        if storage.is_near and not storage.is_there(path):
            subject = f"the output {source.output!r} of the step {source.step!r}, job {by_step[source.step].job_id}"
            raise NotFound(f"its input {name!r} is {subject}, and there is nothing at {path}")
        return path


def _places(places: Places | None, folder: JobFolder, paths: Sequence[str]) -> Places | None:
    """Return where the paths of a step's job may be: where those of the pipeline may, and in outputs that are its
    inputs."""
    if places is None:
        return None
    made_by = {job for path in paths if (job := job_of_output(folder.root, path))}
    made_by |= {job for each in made_by for job in jobs_of_turns(JobFolder(folder.root, each))}
    return msgspec.structs.replace(places, jobs=sorted(made_by.union(places.jobs)))


def _in_words(error: InvalidInput | NotFound) -> str:
    if isinstance(error, InvalidInput):
        return "; ".join(f"{each.pointer}: {each.message}" if each.pointer else each.message for each in error.problems)
    return str(error)
