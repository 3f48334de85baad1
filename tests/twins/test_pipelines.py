"""What the proofs about pipelines find when one of their mechanisms is missing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.conformance.pipelines import test_documents as documents
from tests.conformance.pipelines.documents import HERE
from tests.integration import test_pipelines as pipelines
from tests.integration.queue import test_loop_turns as loops
from tests.integration.queue import test_pipeline_turns as turns
from tests.security import test_paths as paths
from tests.twins.sabotage import expect_failure, without
from tests.unit.core import test_pipelines as steps
from tests.unit.master import test_reuse as reuse

if TYPE_CHECKING:
    from redis import Redis


@pytest.mark.integration
def test_a_turn_that_ends_without_counting_wakes_is_found(redis: Redis, tmp_path: Path) -> None:
    with without("turns.wakes"), expect_failure():
        turns.test_a_wake_that_comes_while_a_turn_ends_lets_it_go_on(redis, tmp_path)


@pytest.mark.integration
def test_steps_whose_jobs_have_any_id_are_found_to_start_twice(redis: Redis, tmp_path: Path) -> None:
    with without("steps.derived"), expect_failure():
        turns.test_two_turns_at_once_start_each_step_once(redis, tmp_path)


@pytest.mark.integration
def test_a_loop_whose_turns_are_forgotten_is_found(redis: Redis, tmp_path: Path) -> None:
    with without("loops.decided"), expect_failure():
        loops.check_recovery(redis, tmp_path)


@pytest.mark.integration
def test_loops_whose_turns_have_any_id_are_found_to_run_them_twice(redis: Redis, tmp_path: Path) -> None:
    with without("steps.derived"), expect_failure():
        loops.check_recovery(redis, tmp_path)


@pytest.mark.integration
def test_a_turn_that_goes_on_after_a_pause_is_found(redis: Redis, tmp_path: Path) -> None:
    with without("turns.fenced"), expect_failure():
        turns.test_a_turn_that_was_paused_until_another_one_began_starts_nothing(redis, tmp_path)


@pytest.mark.integration
def test_an_earlier_end_that_ends_a_new_generation_is_found(redis: Redis, tmp_path: Path) -> None:
    with without("lead.end_of_this"), expect_failure():
        turns.test_the_end_that_redis_has_gone_back_to_is_not_that_of_a_pipeline_that_goes_on(
            redis, tmp_path, is_retired=False
        )


def test_a_decision_that_replaces_an_earlier_one_is_found(tmp_path: Path) -> None:
    with without("steps.first"), expect_failure():
        steps.test_of_two_decisions_about_a_step_the_first_counts(steps.Made(tmp_path))


def test_a_step_that_holds_whatever_it_was_made_of_is_found(tmp_path: Path) -> None:
    with without("steps.upon"), expect_failure():
        steps.test_what_was_made_of_something_that_was_made_anew_does_not_hold(steps.Made(tmp_path))


def test_a_step_that_reads_the_outputs_of_any_job_is_found(tmp_path: Path) -> None:
    with without("paths.rule"), expect_failure():
        paths.test_a_step_reads_the_outputs_of_its_own_pipeline_and_of_no_other_job(paths.places_in(tmp_path))


@pytest.mark.integration
def test_reuse_that_does_not_look_at_the_inputs_is_found() -> None:
    with expect_failure():
        pipelines.check_reuse(without="reuse.content")


def test_reuse_of_what_another_run_has_put_in_its_place_is_found(tmp_path: Path) -> None:
    with without("reuse.outputs"), expect_failure():
        reuse.test_an_output_that_is_not_what_the_step_has_made_is_not_reused(tmp_path, reuse.overwritten)


def test_commands_whose_artifacts_nobody_marks_are_found() -> None:
    document = HERE / "documents" / "artifacts_of_commands.yml"
    with without("azure.artifacts"), expect_failure():
        documents.test_a_document_means_what_is_expected(document)
