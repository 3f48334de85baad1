"""What the proofs find when RQ may call whatever an entry of its queues names, or fails of one that is gone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.integration.queue import test_rq_workers as rq_workers
from tests.security import test_rq_jobs as rq_jobs
from tests.twins.sabotage import expect_failure

if TYPE_CHECKING:
    from redis import Redis

WITHOUT = "from tests.twins.sabotage import without\nwith without({!r}):\n    exec({!r})\n"


@pytest.mark.integration
@pytest.mark.parametrize("service", rq_jobs.SERVICES)
def test_entries_that_are_run_as_rq_would_are_found(service: str) -> None:
    with expect_failure():
        rq_jobs.check_attack(service, without="rq.only_ours")


@pytest.mark.integration
def test_entries_that_two_workers_have_and_that_fail_for_one_are_found(
    redis: Redis, redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rq_workers, "TWICE", WITHOUT.format("rq.twice", rq_workers.TWICE))
    monkeypatch.setattr(rq_workers, "PATIENCE_S", 20.0)  # the entry stays for good
    with expect_failure():
        rq_workers.test_an_entry_that_is_handed_out_twice_ends_without_an_error_and_leaves_nothing(
            redis, redis_url, tmp_path
        )
    assert "Error" in (tmp_path / "log").read_text()


@pytest.mark.integration
def test_a_process_that_takes_another_entry_when_it_is_told_to_stop_is_found(
    redis: Redis, redis_url: str, tmp_path: Path
) -> None:
    with expect_failure():
        rq_workers.check_stop(redis, redis_url, tmp_path, WITHOUT.format("rq.stop", rq_workers.NEXT))


@pytest.mark.integration
def test_a_death_that_fails_an_entry_which_was_asked_for_again_is_found(
    redis: Redis, redis_url: str, tmp_path: Path
) -> None:
    with expect_failure():
        rq_workers.check_asked_for_again(
            redis, redis_url, tmp_path, WITHOUT.format("rq.again", rq_workers.OF_CONCATENATOR)
        )


@pytest.mark.integration
def test_a_death_in_another_entry_than_the_first_that_nobody_notes_is_found(
    redis: Redis, redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with expect_failure():
        rq_workers.check_death(redis, redis_url, tmp_path, WITHOUT.format("rq.death", rq_workers.NEXT))
