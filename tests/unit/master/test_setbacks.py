"""What follows when leaders can't go on."""

from __future__ import annotations

import errno

import pytest

from parallelrun_master.leader.leader import setback_of
from parallelrun_master.planning.apart import Hung
from parallelrun_master.policy.setbacks import CRASH, FULL, HANG, INPUT_TROUBLE, STORE_AWAY, TROUBLE, Setback, pause_s
from parallelrun_master.publishing.scheduling import InputTrouble, StoreTrouble


@pytest.mark.parametrize("error, expected", [
    (OSError(errno.ENOSPC, ""), FULL),
    (OSError(errno.EDQUOT, ""), FULL),
    (OSError(errno.EIO, ""), TROUBLE),
    (OSError(errno.ESTALE, ""), TROUBLE),
    (TimeoutError(errno.ETIMEDOUT, ""), TROUBLE),
    (OSError(errno.ENOTCONN, ""), TROUBLE),
    (OSError(errno.ENOMEM, ""), TROUBLE),
    (InputTrouble(""), INPUT_TROUBLE),
    (StoreTrouble(""), STORE_AWAY),
    (Hung(""), HANG),
    (PermissionError(errno.EACCES, ""), CRASH),
    (ValueError(), CRASH),
])  # fmt: skip
def test_each_error_is_of_a_kind(error: Exception, expected: Setback) -> None:
    assert setback_of(error) is expected


def test_pauses_grow_up_to_half_a_minute() -> None:
    assert [pause_s(count) for count in (1, 2, 3, 4, 5, 6, 7, 100_000)] == [1, 2, 4, 8, 16, 30, 30, 30]


@pytest.mark.parametrize("setback", [CRASH, TROUBLE, INPUT_TROUBLE, HANG])
def test_so_many_in_a_row_fail_the_job_with_the_last_reason(setback: Setback) -> None:
    assert setback.most is not None
    assert setback.failure(setback.most - 1, "why") is None
    failure = setback.failure(setback.most, "why")
    assert failure is not None
    assert (failure.code, "why" in failure.summary) == (setback.code, True)


def test_a_full_disk_is_waited_for_as_long_as_it_takes() -> None:
    assert FULL.failure(1_000_000, "why") is None


def test_a_store_that_is_away_is_waited_for_as_long_as_the_job_says_however_often() -> None:
    assert STORE_AWAY.failure(1_000_000, "why", 599.0, 600.0) is None
    failure = STORE_AWAY.failure(2, "SlowDown", 601.0, 600.0)
    assert failure is not None
    assert (failure.code, "for 601 s, in 2 tries: SlowDown" in failure.summary) == ("INPUT_UNREADABLE", True)
