"""Jobs whose mini-batches all fail alike: they are given up soon, but not for a bad stretch of their input."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from parallelrun_core.wire.states import JobState
from tests.cluster import Cluster

pytestmark = pytest.mark.integration

SCRIPT = textwrap.dedent("""
    import os, pathlib, time
    HERE = pathlib.Path({here!r})
    def run(mini_batch):
        numbers = [int(os.path.basename(path)[5:12]) for path in mini_batch]
        with open(HERE / str(os.getpid()), "a") as file:
            file.writelines(f"{{number}}\\n" for number in numbers)
        {fail}
        return numbers
""")
RAISES = 'raise ValueError(f"bad {mini_batch[0]}")'
ENTERS = "FAIL_FAST"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(slots=2) as running:
        yield running


def script(here: Path, fail: str) -> str:
    return SCRIPT.format(here=str(here), fail=fail)


def calls(here: Path) -> list[int]:
    return [int(line) for file in here.iterdir() for line in file.read_text().splitlines()]


@pytest.mark.parametrize(
    "fail, category, words",
    [
        (RAISES, "RUN_EXCEPTION", "ValueError in entry.py:8"),
        ("os._exit(3)", "EXITED", "the worker exited"),
        ("os.kill(os.getpid(), 11)", "SIGNAL", "the worker was killed"),
    ],
)
def test_fail_fast_gives_a_job_up_that_fails_everywhere_before_any_item_is_run_apart(
    cluster: Cluster, tmp_path: Path, fail: str, category: str, words: str
) -> None:
    inputs = cluster.files(4000)
    job = cluster.submit(
        script(tmp_path, fail), inputs=inputs, mini_batch_size=10, run_max_try=1, on_failure="isolate", fail_fast=True
    )
    result = cluster.result(job, 120)
    assert result.state is JobState.FAILED
    assert result.failure is not None
    assert result.failure.code == ENTERS, result.failure
    assert result.failure.summary.endswith(f"the middle and one from the end of the input: {words}.")
    assert result.failure.error_category == category
    assert result.progress.done == 0
    called = calls(tmp_path)
    assert len(called) == len(set(called)), "items were run apart"
    assert {2000, 3999} <= set(called), "neither the middle nor the end was tried"
    assert len(called) < 4000, "all of it was run before the leader looked"


def test_fail_fast_goes_on_for_a_bad_stretch(cluster: Cluster, tmp_path: Path) -> None:
    fail = "if numbers[0] < 300: raise ValueError('bad')"
    job = cluster.submit(
        script(tmp_path, fail), inputs=cluster.files(600), mini_batch_size=10, run_max_try=1, fail_fast=True
    )
    result = cluster.result(job, 120)
    assert (result.state, result.progress.done, result.progress.failed) == (JobState.COMPLETED, 30, 30)
    assert [int(line) for line in cluster.output(result)] == list(range(300, 600))


def test_fail_fast_says_what_it_would_have_done(cluster: Cluster, tmp_path: Path) -> None:
    job = cluster.submit(
        script(tmp_path, RAISES), inputs=cluster.files(400), mini_batch_size=10, run_max_try=1, fail_fast=False
    )
    result = cluster.result(job, 120)
    assert (result.progress.failed, result.failure is not None and result.failure.code) == (40, "NO_ROWS")
    assert any("with fail_fast: true, the job would have" in warning for warning in result.warnings)
