"""When a job is given up because all of its mini-batches fail alike."""

from __future__ import annotations

import pytest

from parallelrun_core.wire.masking import Mask
from parallelrun_core.wire.outcome import Failure, Outcome
from parallelrun_core.wire.progress import Progress
from parallelrun_master.policy.fail_fast import FailFast
from tests.unit.core.factories import failed, outcome
from tests.unit.master.factories import spec

MIDDLE, LAST = 500, 999


def raised(mini_batch: int, *, message: str = "ValueError: no column '{}'", line: int = 17) -> Outcome:
    place = f'  File "score.py", line {line}, in run\n'
    return failed(mini_batch, items=5, failure=Failure("RUN_EXCEPTION", message.format(mini_batch), place))


def watch(**fields: object) -> FailFast:
    return FailFast(spec(**{"fail_fast": True, **fields}), Progress())


def failed_first(of: FailFast, count: int, *, first: int = 0) -> FailFast:
    of.observe(raised(number) for number in range(first, first + count))
    return of


def test_fail_fast_tries_the_middle_and_the_end_before_it_gives_up() -> None:
    job = failed_first(watch(), 9)
    assert job.probes(1000, 2) == ()
    failed_first(job, 11, first=9)
    assert job.probes(1000, 2) == (MIDDLE, LAST)
    assert job.probes(1000, 2) == (), "once is enough"
    assert job.verdict(2) is None
    job.observe([raised(MIDDLE)])
    assert job.verdict(2) is None
    job.observe([raised(LAST)])
    verdict = job.verdict(2)
    assert verdict is not None
    assert (verdict.code, verdict.summary) == (
        "FAIL_FAST",
        "Nothing has succeeded, and 22 mini-batches have failed alike, among them one from the middle and one from the "
        "end of the input: ValueError in score.py:17.",
    )
    assert verdict.first_cause == "RUN_EXCEPTION: ValueError: no column '0'"
    assert [(each.count, each.place) for each in verdict.errors] == [(22, "score.py:17")]
    assert not job.is_open


@pytest.mark.parametrize(
    "other", [raised(LAST, line=18), raised(LAST, message="ValueError: not a date"), failed(LAST, items=5)]
)
def test_fail_fast_goes_on_if_the_end_fails_otherwise(other: Outcome) -> None:
    job = failed_first(watch(), 30)
    job.probes(1000, 2)
    job.observe([raised(MIDDLE), other])
    assert job.verdict(2) is None


def test_fail_fast_is_over_when_something_succeeds() -> None:
    progress = Progress()
    job = failed_first(FailFast(spec(fail_fast=True), progress), 19)
    progress.done = 1
    failed_first(job, 100)
    assert not job.is_open
    assert job.verdict(2) is None


def test_fail_fast_waits_for_three_failures_of_each_worker() -> None:
    job = failed_first(watch(), 149)
    assert job.probes(100, 50) == (), "the job has no more than these"
    assert job.probes(1000, 50) == (MIDDLE, LAST)
    job.observe([raised(MIDDLE)])
    assert job.verdict(50) is None
    job.observe([raised(LAST)])
    assert job.verdict(50) is not None


def test_fail_fast_counts_a_mini_batch_once() -> None:
    job = watch()
    for _ in range(30):
        job.observe([raised(MIDDLE), raised(LAST), outcome(3)])
    assert job.probes(1000, 2) == ()


def test_without_fail_fast_a_remark_says_what_it_would_have_done() -> None:
    job = failed_first(watch(fail_fast=False), 20)
    assert (job.probes(1000, 2), job.verdict(2)) == ((), None)
    assert "when 20 mini-batches had failed alike (ValueError in score.py:17)" in job.remark(2)
    assert job.remark(2) == "", "once is enough"


def test_jobs_of_earlier_releases_are_not_watched() -> None:
    job = failed_first(watch(fail_fast=None), 100)
    assert (job.is_open, job.remark(2)) == (False, "")


def test_fail_fast_hides_secrets() -> None:
    job = FailFast(spec(fail_fast=True), Progress(), Mask({"environment_variables": {"KEY": "verysecret"}}))
    job.observe(raised(number, message="ValueError: verysecret") for number in (*range(30), MIDDLE, LAST))
    assert job.probes(1000, 2)
    verdict = job.verdict(2)
    assert verdict is not None
    assert "verysecret" not in str(verdict)
