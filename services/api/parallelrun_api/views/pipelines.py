"""The standing of a pipeline's steps, for those who ask, however many steps there are and however often they ask.

A pipeline of two hundred steps has two hundred jobs. What never changes is read once: what was submitted, what was
decided about steps, and how a job has ended. What may change of all jobs comes from Redis in one round trip.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Final, NamedTuple

from parallelrun_core.answers import jobs as answers
from parallelrun_core.answers.answer import rfc3339
from parallelrun_core.errors import NotFound
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.folder.records import JobRecord, JobResult
from parallelrun_core.lru_cache import LruCache
from parallelrun_core.pipelines.outputs import output_path
from parallelrun_core.pipelines.records import StepRecord, by_step, read_record, record_names
from parallelrun_core.pipelines.standing import StepStanding, end_of, standings
from parallelrun_core.pipelines.turns import is_gathered, unrolled
from parallelrun_core.spec import PipelineSpec
from parallelrun_core.spec.pipeline import Step
from parallelrun_core.store.registry import JobStatus, Registry
from parallelrun_core.wire.masking import Mask, masked_spec
from parallelrun_core.wire.states import JobState, StepState

_PIPELINES: Final = 64
"""Of which what was submitted is remembered."""
_ENDS: Final = 20_000
"""Jobs of which the end is remembered."""


@dataclass
class Submitted:
    """A pipeline as it was submitted, and what is made of that for each answer."""

    record: JobRecord
    decisions: dict[str, StepRecord] = field(default_factory=dict)
    """The decisions about its steps, by the names of their records."""
    paths: dict[str, str] = field(default_factory=dict)
    """The paths of its outputs, as far as they are known, with the job that made each."""
    steps: dict[str, tuple[Any, answers.PipelineStep]] = field(default_factory=dict)
    """The steps as they were shown last, each with what that was made of."""

    @cached_property
    def spec(self) -> PipelineSpec:
        return self.record.pipeline_spec()

    @cached_property
    def needs(self) -> dict[str, list[str]]:
        return needs_of(self.spec)

    @cached_property
    def mask(self) -> Mask:
        return Mask(self.record.spec)

    @cached_property
    def shown(self) -> dict[str, Any]:
        return masked_spec(self.record.spec)


def needs_of(spec: PipelineSpec) -> dict[str, list[str]]:
    """The steps in an order in which they can run, each with those that it needs."""
    return {name: sorted(spec.steps[name].needs()) for name in spec.order()}


class _PlacedStep(NamedTuple):
    """A step, with those that it needs."""

    name: str
    step: Step
    needs: list[str]
    turns: tuple[int, int] | None
    """Numbers of turns that have begun, and that there may be; None: it is no loop, or waits."""


@dataclass(frozen=True)
class _End:
    version: int | None
    """The version of the job on Redis, when that was read; None: Redis had forgotten it."""
    generation: int
    result: JobResult


class Pipelines:
    """Reads pipelines and how their steps stand. Safe to share between threads."""

    def __init__(self, root: Path, registry: Registry) -> None:
        self._root = root
        self._registry = registry
        self._submitted = LruCache[Submitted](_PIPELINES)
        self._ends = LruCache[_End](_ENDS)

    def submitted(self, folder: JobFolder) -> Submitted | None:
        """Return what was submitted, if it is remembered and the job is still there."""
        cached = self._submitted.get(folder.job_id)
        return cached if cached is not None and folder.has_record else None

    def remember(self, record: JobRecord) -> Submitted:
        """Remember what was submitted."""
        return self._submitted.put(record.job_id, Submitted(record))

    def steps(
        self, folder: JobFolder, pipeline: Submitted, *, is_redis_there: bool
    ) -> tuple[list[answers.PipelineStep], list[answers.NamedOutput]]:
        """The steps and the outputs of a pipeline.

        Raises:
            CorruptLog, NewerSchema: what is in its folder can't be read.
            RedisError: Redis is away.
        """
        records = self._decisions(folder, pipeline)
        jobs = sorted({each[-1].job for each in records.values()} - {""})
        statuses = self._registry.statuses(jobs) if is_redis_there else {}
        spec = unrolled(pipeline.spec, records)
        by_step = standings(folder, spec, records=records, end=partial(self._end_of, statuses))
        needs = pipeline.needs if spec is pipeline.spec else needs_of(spec)
        placed = [
            _PlacedStep(name, spec.steps[name], needs[name], self._turns(spec.steps[name], by_step[name]))
            for name in needs
        ]
        steps = [_step(each, pipeline, by_step[each.name], statuses) for each in placed]
        return steps, [*self._outputs(folder, pipeline, spec, by_step)]

    def _turns(self, step: Step, standing: StepStanding) -> tuple[int, int] | None:
        """Return how many turns of a loop have begun, and how many there may be; None of what is no loop, or waits."""
        if step.type != "pipeline" or not step.job.get("loop") or not standing.job_id:
            return None
        folder = JobFolder(self._root, standing.job_id)
        with suppress(NotFound):
            child = self.submitted(folder) or self.remember(folder.record())
            if (loop := child.spec.loop) is not None:
                last = [records[-1].action for records in self._decisions(folder, child).values()]
                begun = sum(action in ("start", "continue", "reuse") for action in last)
                return begun, len(loop.items) or loop.max_turns
        return None

    def _decisions(self, folder: JobFolder, pipeline: Submitted) -> Mapping[str, list[StepRecord]]:
        for name in (names := record_names(folder)):
            if name not in pipeline.decisions:
                pipeline.decisions[name] = read_record(folder, name)
        return by_step(pipeline.decisions[name] for name in names)

    def _end_of(
        self, statuses: Mapping[str, JobStatus], folder: JobFolder, generation: int
    ) -> tuple[int, JobResult | None]:
        status = statuses.get(folder.job_id)
        if status is not None and not status.state.is_terminal:
            return generation, None
        version = status.version if status is not None else None
        end = self._ends.get(folder.job_id)
        if end is not None and version in (None, end.version) and end.generation >= generation:
            return end.generation, end.result
        ended_in, result = end_of(folder, generation)
        if result is not None:
            self._ends.put(folder.job_id, _End(version, ended_in, result))
        return ended_in, result

    def _outputs(
        self, folder: JobFolder, pipeline: Submitted, spec: PipelineSpec, by_step: Mapping[str, StepStanding]
    ) -> list[answers.NamedOutput]:
        outputs = []
        for name, output in spec.outputs.items():
            path: str | None = None
            if is_gathered(pipeline.spec) and (gathered := folder.outputs / name).exists():
                path = str(gathered)
            if output.of is not None and (job := by_step[output.of.step].job_id):
                path = pipeline.paths.get(f"{name}/{job}") or self._path(job, output.of.output)
                if path is not None:
                    pipeline.paths[f"{name}/{job}"] = path
            step = output.of.step if output.of is not None else None
            outputs.append(answers.NamedOutput(name=name, type=output.type, step=step, path=path))
        return outputs

    def _path(self, job_id: str, output: str) -> str | None:
        try:
            return output_path(JobFolder(self._root, job_id), output)
        except NotFound:
            return None


def _step(
    placed: _PlacedStep, pipeline: Submitted, standing: StepStanding, statuses: Mapping[str, JobStatus]
) -> answers.PipelineStep:
    job = standing.job_id if standing.state not in (StepState.WAITING, StepState.SKIPPED) else ""
    result = standing.result if job else None
    status = statuses.get(job) if result is None else None
    live = (status.version, status.state, status.started) if status is not None else None
    made_of = (standing.state, standing.record, result, live, placed.needs, placed.turns)
    presented = pipeline.steps.get(placed.name)
    if presented is None or presented[0] != made_of:
        view = _shown(placed, pipeline.mask, standing, job, result or status)
        presented = pipeline.steps[placed.name] = made_of, view
    return presented[1]


def _shown(
    placed: _PlacedStep, mask: Mask, standing: StepStanding, job: str, now: JobStatus | JobResult | None
) -> answers.PipelineStep:
    step = placed.step
    return answers.PipelineStep(
        name=placed.name,
        type=step.type,
        loop=(step.job.get("loop") or {}).get("type") if step.type == "pipeline" else None,
        turns=placed.turns[0] if placed.turns else None,
        most_turns=placed.turns[1] if placed.turns else None,
        state=standing.state,
        reused=bool(job) and standing.is_reused,
        needs=placed.needs,
        job=job or None,
        link=f"/v1/jobs/{job}" if job else None,
        job_state=(now.state if now else JobState.QUEUED) if job else None,
        progress=now.progress if now else None,
        started=rfc3339(now.started) if now and now.started is not None else None,
        ended=rfc3339(now.ended) if now and now.ended is not None else None,
        why=mask.printable(_why(standing)),
    )


def _why(standing: StepStanding) -> str:
    why = standing.why
    failure = standing.result.failure if standing.result is not None else None
    is_failure = standing.state in (StepState.FAILED, StepState.CANCELED)
    return why or (failure.cause_text or failure.summary if failure is not None and is_failure else "")
