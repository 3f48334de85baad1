"""A pipeline in one turn: how its steps stand, and what is done about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from parallelrun_core.errors import Conflict, Fenced, InvalidInput, NotFound
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.folder.records import JobRecord
from parallelrun_core.intake.cancelling import cancel
from parallelrun_core.pipelines.records import StepRecord, read_records
from parallelrun_core.pipelines.standing import StepStanding, standings
from parallelrun_core.pipelines.turns import unrolled
from parallelrun_core.spec.later_inputs import StepOutput
from parallelrun_core.store.registry import Registry
from parallelrun_core.tracing.switch import Tracing
from parallelrun_core.wire.states import JobState, StepState
from parallelrun_master.destinations import destinations_of
from parallelrun_master.job_end import check_end, recorded_end
from parallelrun_master.pipelines.condition_values import truth_of, truths
from parallelrun_master.pipelines.ending import Ending
from parallelrun_master.pipelines.gathering import gather
from parallelrun_master.pipelines.propagate import pass_on_from
from parallelrun_master.pipelines.reports import PipelineReports
from parallelrun_master.pipelines.reuse import offer_for_reuse
from parallelrun_master.pipelines.steps import Steps
from parallelrun_master.policy.next_steps import Next, next_steps

if TYPE_CHECKING:
    from parallelrun_core.store.connection import Redis
    from parallelrun_master.leadership import Leadership


class PipelineRun:
    def __init__(
        self, redis: Redis, folder: JobFolder, record: JobRecord, leadership: Leadership, *, tracing: Tracing | None
    ) -> None:
        self._redis = redis
        self._folder = folder
        self._spec = record.pipeline_spec()
        self._leadership = leadership
        self._queue = leadership.queue
        self._queue.generation = folder.generation()
        self._registry = Registry(redis)
        self._reports = PipelineReports(folder, leadership.term)
        self._steps = Steps(
            redis,
            folder,
            record,
            self._spec,
            self._reports,
            check_turn=self._check_turn,
            generation=self._queue.generation,
        )
        self._ending = Ending(
            folder,
            self._queue,
            self._registry,
            self._reports,
            destinations=destinations_of(folder, record, self._queue.generation, tracing),
            check_turn=self._check_turn,
        )
        self._has_checked = False
        self._has_counted = False

    def step(self) -> bool:
        """Do all that can be done now; returns whether the pipeline has ended, which is recorded then.

        Raises:
            Fenced: another term has begun, or Redis has forgotten the pipeline.
        """
        if recorded_end(self._registry, self._folder) is not None:
            return True
        self._has_checked = self._has_checked and not self.is_pending  # what is pending is tried again
        state, self._steps.is_pending = self._begun(), False
        while True:
            records = read_records(self._folder)
            spec = self._steps.spec = unrolled(self._spec, records)
            by_step = standings(self._folder, spec, records=records)
            self._count_as_durable(records, by_step)
            self._check_jobs(by_step)
            self._show(by_step)
            following = self._following(by_step, state)
            if state is JobState.FINALIZING and following.end is None:  # the disk has lost the end of a step
                state = self._moved(JobState.PROCESSING)
                continue
            if following.end is not None and not following.skip:  # what is skipped is recorded before the end
                end = JobState.FAILED if state is JobState.FAILED else following.end
                if end is JobState.COMPLETED:
                    self._check_turn()
                    gather(self._folder, self._spec)
                self._ending.conclude(end, by_step, self._cut_short(by_step))
                return True
            if not self._is_changed(following, by_step):
                return False

    def _cut_short(self, by_step: Mapping[str, StepStanding]) -> list[str]:
        """A warning, if a `do_while` has ended only because it has had all its turns."""
        loop = self._spec.loop
        if loop is None or not loop.condition or len(by_step) < loop.max_turns:
            return []
        last = list(by_step)[-1]
        if by_step[last].state is not StepState.COMPLETED:
            return []
        with suppress(NotFound, InvalidInput):
            if truth_of(self._folder, StepOutput(step=last, output=loop.condition), by_step):
                return [
                    f"The loop ended after {loop.max_turns:,} turns (max_iteration_count), and its condition "
                    f"{loop.condition!r} was still true."
                ]
        return []

    @property
    def is_pending(self) -> bool:
        """Return whether there is something to do soon that nobody will wake the pipeline for."""
        return self._steps.is_pending

    def retire(self) -> None:
        """The result is recorded: show it, and clean up."""
        self._ending.retire()

    def _count_as_durable(
        self, records: Mapping[str, Sequence[StepRecord]], by_step: Mapping[str, StepStanding]
    ) -> None:
        """Note what earlier turns have decided and steps have done: setbacks with none of that in between add up."""
        if not self._has_counted:
            self._has_counted = True
            ended = sum(each.state.has_ended for each in by_step.values())
            self._leadership.durable_before = sum(map(len, records.values())) + ended

    def _check_turn(self) -> None:
        """Make sure, before something is decided or done, that this turn was not paused until another one began.

        Raises:
            Fenced: it was, or the pipeline goes on in a later generation.
        """
        self._leadership.renew()
        if (generation := self._folder.generation()) != self._queue.generation:
            raise Fenced(f"generation {generation} has begun")

    def _begun(self) -> JobState:
        """The state of the pipeline, which is processing from its first turn on."""
        match state := self._registry.state(self._folder.job_id):
            case None:
                raise Fenced("Redis has forgotten the job")
            case JobState.QUEUED | JobState.PROCESSING if self._folder.has_cancel(self._queue.generation):
                return self._moved(JobState.CANCELED)  # Redis has forgotten it
            case JobState.QUEUED:
                self._reports.begin(self._spec)
                if self._moved(JobState.PROCESSING) is JobState.PROCESSING:
                    self._queue.show({"started": repr(self._registry.now())})
                    return JobState.PROCESSING
                return self._begun()
            case ended if ended.is_terminal:
                check_end(self._registry, self._folder)
        return state

    def _moved(self, to: JobState) -> JobState:
        """The state after a move, which somebody else may have made impossible."""
        with suppress(Conflict, NotFound):
            self._registry.move(self._folder.job_id, to, term=self._queue.term)
        return self._registry.state(self._folder.job_id) or to

    def _following(self, by_step: Mapping[str, StepStanding], state: JobState) -> Next:
        failures = {name for name, each in by_step.items() if each.state is StepState.SKIPPED and _is_failure(each)}
        spec = self._steps.spec
        return next_steps(
            spec,
            list(by_step),
            {name: each.state for name, each in by_step.items()},
            truths(self._folder, spec, by_step),
            frozenset(failures),
            is_canceled=state.is_terminal,
        )

    def _is_changed(self, following: Next, by_step: Mapping[str, StepStanding]) -> bool:
        """Carry it out; returns whether there may be more to do at once."""
        for name, skip in following.skip.items():
            self._steps.skip(name, skip)
        for name in following.begin:
            self._steps.begin(name, by_step)
        if following.cancel:
            self._check_turn()
        for name in following.cancel:
            with suppress(Conflict, NotFound):  # it is about to end
                cancel(self._redis, JobFolder(self._folder.root, by_step[name].job_id))
        return bool(following.skip or following.begin)

    def _check_jobs(self, by_step: Mapping[str, StepStanding]) -> None:
        """Once in a turn: let those jobs of steps go on that Redis doesn't know, or that were never made."""
        if not self._has_checked:
            self._has_checked = True
            records = [each.record for each in by_step.values() if each.state is StepState.RUNNING and each.record]
            states = self._registry.states([record.job for record in records])
            for record, state in zip(records, states, strict=True):
                if state is None or state.is_terminal:  # it may be about to end, or have been forgotten
                    self._steps.carry_out(record, by_step)

    def _show(self, by_step: Mapping[str, StepStanding]) -> None:
        """Publish how the steps stand, and say what has changed."""
        before = self._queue.shown_steps()
        now = {name: each.state.value for name, each in by_step.items()}
        if before == now:
            return
        for name, each in by_step.items():
            if before.get(name, StepState.WAITING.value) != each.state:
                event = {"step": name, "state": each.state, "job_id": each.job_id, "why": each.why}
                self._queue.announce("step", msgspec.json.encode(event))
                self._note(name, each, by_step)
        self._queue.show_steps(now)

    def _note(self, name: str, standing: StepStanding, by_step: Mapping[str, StepStanding]) -> None:
        """A step stands otherwise than before: say so, and take what is to be kept of a job that has ended."""
        self._reports.stands(name, standing)
        step = self._steps.spec.steps[name]
        if standing.result is not None and standing.state.has_ended:
            pass_on_from(name, step, JobFolder(self._folder.root, standing.job_id), self._folder.logs)
        if standing.state is StepState.COMPLETED:
            offer_for_reuse(self._folder, step, standing, by_step)


def _is_failure(standing: StepStanding) -> bool:
    return standing.record is not None and standing.record.is_failure
