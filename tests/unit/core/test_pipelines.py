"""What was decided about the steps of a pipeline, and how they stand because of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from parallelrun_core.errors import CorruptLog
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.folder.records import JobRecord, JobResult, Parent, Reopening
from parallelrun_core.ids import job_id_from, new_job_id
from parallelrun_core.pipelines.records import Action, StepRecord, read_records, write_record
from parallelrun_core.pipelines.standing import standings
from parallelrun_core.spec import PipelineSpec
from parallelrun_core.wire.progress import Progress
from parallelrun_core.wire.states import JobState, StepState

COMMAND: dict[str, Any] = {"type": "command", "job": {"command": "true"}}


class Made:
    """A pipeline of two steps, of which the second one needs the first one."""

    def __init__(self, root: Path, **of_first: Any) -> None:
        first = {**COMMAND, "job": {**COMMAND["job"], **of_first}}
        self.spec = PipelineSpec.parse({"steps": {"a": first, "b": {**COMMAND, "after": ["a"]}}})
        self.folder = JobFolder(root, new_job_id())
        spec = self.spec.model_dump(mode="json")
        self.folder.create(JobRecord(job_id=self.folder.job_id, submitted=1.0, code="", spec=spec))

    def decide(self, step: str, action: Action = "start", generation: int = 0, **fields: Any) -> StepRecord:
        record = StepRecord(step=step, generation=generation, at=1.0, action=action, **fields)
        return write_record(self.folder, record)

    def run(self, step: str, state: JobState | None = JobState.COMPLETED, failed: int = 0, **fields: Any) -> JobFolder:
        """Start a step; it ends at once if it is to end."""
        child = JobFolder(self.folder.root, job_id_from(self.folder.job_id, step))
        parent = Parent(job_id=self.folder.job_id, step=step, owner=self.folder.job_id)
        child.create(JobRecord(job_id=child.job_id, submitted=1.0, code="", spec=COMMAND["job"], parent=parent))
        self.decide(step, job=child.job_id, **fields)
        if state is not None:
            conclude(child, state, failed)
        return child

    def states(self) -> list[StepState]:
        return [each.state for each in standings(self.folder, self.spec).values()]

    def reopen(self, *, retry_failed: bool = False) -> None:
        self.folder.conclude(
            JobResult(job_id=self.folder.job_id, state=JobState.FAILED, started=1.0, ended=2.0, progress=Progress())
        )
        self.folder.reopen(Reopening(generation=1, at=3.0, retry_failed=retry_failed))


def conclude(child: JobFolder, state: JobState, failed: int = 0) -> None:
    progress = Progress(failed=failed)
    child.conclude(JobResult(job_id=child.job_id, state=state, started=1.0, ended=2.0, progress=progress))


@pytest.fixture
def made(tmp_path: Path) -> Made:
    return Made(tmp_path)


def test_of_two_decisions_about_a_step_the_first_counts(made: Made) -> None:
    first = made.decide("a", job="job_" + "1" * 20)
    assert made.decide("a", "skip", why="too late") == first
    assert read_records(made.folder) == {"a": [first]}


def test_a_decision_that_is_damaged_is_refused_with_its_file(made: Made) -> None:
    made.decide("a", "skip", why="a condition")
    path = made.folder.layout.steps / "a.0.json"
    path.write_bytes(path.read_bytes().replace(b"condition", b"conditiom"))
    with pytest.raises(CorruptLog, match=r"a\.0\.json"):
        read_records(made.folder)


def test_steps_stand_as_was_decided_and_as_their_jobs_have_ended(made: Made) -> None:
    assert made.states() == [StepState.WAITING, StepState.WAITING]
    child = made.run("a", None)
    assert made.states() == [StepState.RUNNING, StepState.WAITING]
    conclude(child, JobState.FAILED)
    made.decide("b", "skip", is_failure=True)
    assert made.states() == [StepState.FAILED, StepState.SKIPPED]


def test_a_step_whose_end_is_damaged_has_failed_and_says_why(made: Made) -> None:
    child = made.run("a")
    path = child.layout.result(0)
    path.write_bytes(path.read_bytes().replace(b"completed", b"compleled"))
    standing = standings(made.folder, made.spec)["a"]
    assert standing.state is StepState.FAILED
    assert standing.result is not None
    assert standing.result.failure is not None
    assert standing.result.failure.code == "JOB_DAMAGED"
    assert str(path) in standing.result.failure.summary


def test_in_a_new_generation_what_completed_holds_and_the_rest_waits(made: Made) -> None:
    child = made.run("a")
    made.run("b", JobState.FAILED, upon={"a": f"{child.job_id}/0"})
    made.reopen()
    assert made.states() == [StepState.COMPLETED, StepState.WAITING]
    assert standings(made.folder, made.spec)["b"].result is not None


def test_what_was_made_of_something_that_was_made_anew_does_not_hold(made: Made) -> None:
    child = made.run("a")
    made.run("b", upon={"a": f"{child.job_id}/0"})
    made.reopen()
    assert made.states() == [StepState.COMPLETED, StepState.COMPLETED]
    child.reopen(Reopening(generation=1, at=3.0, retry_failed=True))
    assert made.states()[0] is StepState.RUNNING
    conclude(child, JobState.COMPLETED)
    assert made.states() == [StepState.COMPLETED, StepState.WAITING]


def test_a_retry_goes_on_with_what_has_failed_in_steps_that_completed(made: Made) -> None:
    child = made.run("a", failed=2)
    made.run("b", upon={"a": f"{child.job_id}/0"})
    made.reopen(retry_failed=True)
    assert made.states() == [StepState.WAITING, StepState.WAITING]


def test_the_end_of_an_earlier_generation_is_no_end_of_a_job_that_goes_on(made: Made) -> None:
    child = made.run("a", JobState.FAILED)
    made.reopen()
    made.decide("a", "continue", 1, job=child.job_id, job_generation=1)
    assert made.states()[0] is StepState.RUNNING


def check_a_retry_leaves_assets_alone(root: Path) -> None:
    made = Made(root, outputs={"rows": {"asset": {"name": "scores"}}})
    child = made.run("a", failed=2)
    made.run("b", upon={"a": f"{child.job_id}/0"})
    made.reopen(retry_failed=True)
    assert made.states() == [StepState.COMPLETED, StepState.COMPLETED]


def test_a_retry_leaves_a_step_alone_whose_output_is_a_version_of_an_asset(tmp_path: Path) -> None:
    check_a_retry_leaves_assets_alone(tmp_path)
