"""Loops on a real Redis: their turns, each decided by another turn of a master, which knows only the folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from parallelrun_core.errors import InvalidInput
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.folder.records import Reopening
from parallelrun_core.intake.reopening import reopen
from parallelrun_core.pipelines.outputs import output_path, parts_of
from parallelrun_core.pipelines.records import read_records
from parallelrun_core.pipelines.standing import standings
from parallelrun_core.pipelines.turns import MAX_NAME, named_items, unrolled, with_items
from parallelrun_core.spec import PipelineSpec
from parallelrun_core.store.keys import JobKeys
from parallelrun_core.store.registry import Registry
from parallelrun_core.wire.states import JobState, StepState
from tests.integration.queue.test_pipeline_turns import end, jobs_in, pipeline, take_turn

if TYPE_CHECKING:
    from redis import Redis

pytestmark = pytest.mark.integration

BODY: dict[str, Any] = {
    "type": "command",
    "job": {"command": "true", "outputs": {"again": {"type": "uri_file"}, "made": {"type": "uri_file"}}},
    "outputs_to": {"again": "again", "made": "made"},
}
OUTPUTS = {name: {"type": "uri_file", "of": {"step": "body", "output": name}} for name in ("again", "made")}


def while_loop(redis: Redis, root: Path, **loop: Any) -> JobFolder:
    """The job of a `do_while` whose body reads what the turn before has made, once there is one."""
    body = {**BODY, "inputs_from": {"before": {"input": "before", "type": "uri_file"}}}
    carried = {"before": {"output": "made", "type": "uri_file"}}
    fields = {"type": "do_while", "carried": carried, "condition": "again", "max_turns": 5, **loop}
    return looping(redis, root, body, fields, OUTPUTS)


def looping(
    redis: Redis, root: Path, body: dict[str, Any], loop: dict[str, Any], outputs: Any, **more: Any
) -> JobFolder:
    """The job of a loop, as the pipeline around it would make it."""
    inner = {"steps": {"body": body}, "outputs": outputs, "loop": loop, **more}
    outer = pipeline(redis, root, {"loop": {"type": "pipeline", "job": inner}})
    take_turn(redis, outer)
    (child,) = jobs_in(root) - {outer.job_id}
    return JobFolder(root, child)


def crash(redis: Redis, folder: JobFolder) -> None:
    """The master dies, and Redis forgets the loop and the jobs of its turns."""
    redis.delete(JobKeys(folder.job_id).leader)
    for job in jobs_in(folder.root):
        Registry(redis).forget(job)
    from parallelrun_core.intake.launching import register

    register(redis, folder)


def running(folder: JobFolder) -> dict[str, JobFolder]:
    by_step = standings(folder, folder.record().pipeline_spec())
    return {
        name: JobFolder(folder.root, each.job_id) for name, each in by_step.items() if each.state is StepState.RUNNING
    }


def finish(redis: Redis, job: JobFolder, *, again: str, state: JobState = JobState.COMPLETED) -> None:
    assert job.has_record, "another job runs the turn than was decided"
    job.outputs.mkdir(exist_ok=True)
    (job.outputs / "again").write_text(again)
    (job.outputs / "made").write_text(job.job_id)
    end(redis, job, state)


def states(folder: JobFolder) -> dict[str, str]:
    return {name: each.state.value for name, each in standings(folder, folder.record().pipeline_spec()).items()}


def check_recovery(redis: Redis, root: Path) -> None:
    loop = while_loop(redis, root)
    jobs = []
    for number, again in enumerate(["true", "True", "false"], 1):
        take_turn(redis, loop)
        crash(redis, loop)
        take_turn(redis, loop)
        assert list(running(loop)) == [f"turn-{number}"]
        (job,) = running(loop).values()
        jobs.append(job)
        finish(redis, job, again=again)
        crash(redis, loop)
    take_turn(redis, loop)
    result = loop.result()
    assert result is not None
    assert result.state is JobState.COMPLETED
    assert states(loop) == {"turn-1": "completed", "turn-2": "completed", "turn-3": "completed", "turn-4": "skipped"}
    assert len(jobs_in(root)) == 2 + 3, "a turn was run more than once"
    assert all(len(records) == 1 for records in read_records(loop).values()), "a turn was decided more than once"
    befores = [job.record().job_spec().inputs.get("before") for job in jobs]
    assert befores[0] is None
    assert [getattr(each, "path", "") for each in befores[1:]] == [str(job.outputs / "made") for job in jobs[:2]]
    assert Path(output_path(loop, "made")).read_text() == jobs[-1].job_id, "the output is that of the last turn"


def test_a_loop_goes_on_exactly_where_it_was_whenever_its_master_dies(redis: Redis, tmp_path: Path) -> None:
    check_recovery(redis, tmp_path)


def test_a_loop_ends_after_its_most_turns_and_says_that_it_would_have_gone_on(redis: Redis, tmp_path: Path) -> None:
    loop = while_loop(redis, tmp_path, max_turns=2)
    for _ in range(2):
        take_turn(redis, loop)
        (job,) = running(loop).values()
        finish(redis, job, again="true")
    take_turn(redis, loop)
    result = loop.result()
    assert result is not None
    assert result.state is JobState.COMPLETED
    assert states(loop) == {"turn-1": "completed", "turn-2": "completed"}
    assert any("2 turns (max_iteration_count)" in warning for warning in result.warnings)


def test_a_turn_that_fails_ends_the_loop_and_resume_goes_on_with_it(redis: Redis, tmp_path: Path) -> None:
    loop = while_loop(redis, tmp_path)
    take_turn(redis, loop)
    finish(redis, running(loop)["turn-1"], again="true")
    take_turn(redis, loop)
    second = running(loop)["turn-2"]
    finish(redis, second, again="", state=JobState.FAILED)
    take_turn(redis, loop)
    result = loop.result()
    assert result is not None
    assert result.state is JobState.FAILED
    assert result.failure is not None
    assert "'turn-2'" in result.failure.summary
    assert states(loop)["turn-3"] == "skipped"
    Registry(redis).forget(second.job_id)
    reopen(Registry(redis), loop, Reopening(generation=1, at=3.0, retry_failed=False))
    crash(redis, loop)
    take_turn(redis, loop)
    assert states(loop) == {"turn-1": "completed", "turn-2": "running", "turn-3": "waiting"}
    assert second.generation() == 1, "its job goes on"


def items(redis: Redis, root: Path, names: dict[str, int], **more: Any) -> JobFolder:
    """The job of a `parallel_for`."""
    body = {**BODY, "inputs_from": {"n": {"input": "n", "literal": "integer"}}}
    loop = {"type": "parallel_for", "items": {name: {"n": {"value": value}} for name, value in names.items()}}
    outputs = {**OUTPUTS, "made": {"type": "uri_folder", "of": {"step": "body", "output": "made"}}}
    return looping(redis, root, body, loop, outputs, **more)


def test_no_more_turns_run_at_the_same_time_than_were_asked_for(redis: Redis, tmp_path: Path) -> None:
    loop = items(redis, tmp_path, {"a": 1, "b": 2, "c": 3}, max_concurrency=2)
    take_turn(redis, loop)
    crash(redis, loop)
    take_turn(redis, loop)
    assert list(running(loop)) == ["a", "b"]
    assert running(loop)["b"].record().spec["inputs"]["n"] == {"value": 2}
    finish(redis, running(loop)["a"], again="1")
    take_turn(redis, loop)
    assert list(running(loop)) == ["b", "c"]


def test_the_outputs_of_all_turns_are_in_one_place_in_their_order(redis: Redis, tmp_path: Path) -> None:
    loop = items(redis, tmp_path, {"turn-1": 1, "turn-2": 2})
    take_turn(redis, loop)
    first, second = running(loop).values()
    finish(redis, second, again="two")
    finish(redis, first, again="true")
    take_turn(redis, loop)
    made = Path(output_path(loop, "made"))
    assert sorted(each.name for each in made.iterdir()) == ["MLTable", "turn-1", "turn-2"]
    assert (made / "turn-2" / "made").read_text() == second.job_id
    assert (made / "turn-2" / "made").is_symlink()
    assert json.loads(Path(output_path(loop, "again")).read_text()) == [True, "two"]
    assert [part.name for part in parts_of(loop, "made")] == ["turn-1", "turn-2"]


def dynamic(text: str, *open_inputs: str, literal: str = "integer") -> PipelineSpec:
    sources = {name: {"input": name, **({"literal": literal} if literal else {})} for name in open_inputs}
    return PipelineSpec.parse(
        {
            "steps": {"body": {**BODY, "inputs_from": sources}},
            "inputs": {"__items": {"value": text}},
            "loop": {"type": "parallel_for", "items_from": "__items"},
        }
    )


def test_items_that_a_step_has_made_are_frozen_in_the_job_of_the_loop() -> None:
    spec = with_items(dynamic('{"north": {"n": "3"}, "south": {"n": 4}}', "n", "left_out"))
    steps = unrolled(spec, {}).steps
    assert {name: step.job["inputs"] for name, step in steps.items()} == {
        "north": {"n": {"value": 3}},
        "south": {"n": {"value": 4}},
    }
    assert not any(step.inputs_from for step in steps.values())
    assert with_items(spec) == spec
    paths = with_items(
        dynamic('[{"n": "/data/a"}, {"n": {"uri": "s3://b/c", "job_input_type": "uri_file"}}]', "n", literal="")
    )
    assert [step.job["inputs"]["n"] for step in unrolled(paths, {}).steps.values()] == [
        {"path": "/data/a"},
        {"path": "s3://b/c", "type": "uri_file"},
    ]
    assert all(len(step.job["name"]) <= MAX_NAME for step in steps.values())


@pytest.mark.parametrize(
    "text, told",
    [
        ("no list", "the items are no JSON"),
        ("3", "the items must be a list of mappings"),
        ("[]", "there are no items"),
        ('[{"m": 1}]', "which is no open input of the body"),
        ('[{"n": "many"}]', "'n' of the item 'turn-1' is 'many', and no integer"),
        ('[{"n": 1}, {}]', "the item 'turn-2' has none, and the first one has n"),
        (json.dumps([{"n": 1}] * 1001), "there are 1,001 items, more than 1,000"),
    ],
)
def test_items_that_a_step_has_made_wrongly_are_refused_in_words(text: str, told: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        with_items(dynamic(text, "n"))
    assert told in caught.value.problems[0].message


def test_a_relative_path_in_items_that_a_step_has_made_is_refused() -> None:
    with pytest.raises(InvalidInput) as caught:
        with_items(dynamic('[{"n": "data"}]', "n", literal=""))
    assert "no absolute path" in caught.value.problems[0].message
    assert named_items([{}]) == {"turn-1": {}}
