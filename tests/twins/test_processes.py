"""What the proofs about processes and their output find when a rule is broken."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from parallelrun_agent.workers import capped_log
from parallelrun_agent.workers.stack_memory import StackMemory
from parallelrun_agent.workers.worker_process import WorkerProcess
from tests.integration.worker import test_stacks as stacks
from tests.integration.worker import test_worker_deaths as worker_deaths
from tests.integration.worker.worker_harness import Start, WorkerHarness
from tests.twins.sabotage import always, expect_failure
from tests.unit.agent import test_capped_log as test_of_logs


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    harnesses: list[WorkerHarness] = []

    def begin(script: str) -> WorkerHarness:
        harnesses.append(WorkerHarness(tmp_path, script))
        return harnesses[-1]

    yield begin
    for harness in harnesses:
        with suppress(ProcessLookupError):
            os.killpg(harness.worker.pid, signal.SIGKILL)  # what the sabotage has left alive
        harness.close()


@pytest.mark.integration
def test_an_end_of_the_worker_alone_leaves_its_children(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(WorkerProcess, "kill", lambda process: os.kill(process.pid, signal.SIGKILL))
    monkeypatch.setattr(worker_deaths, "CHILD_ENDS_S", 0.3)
    with expect_failure():
        worker_deaths.test_children_that_the_user_started_end_with_their_worker(start, "kill")


def test_output_without_a_limit_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capped_log.CappedLog, "trim", always(False))
    with expect_failure():
        test_of_logs.test_output_stays_short_and_what_is_dropped_is_counted(tmp_path)


@pytest.mark.integration
def test_stacks_that_go_into_any_open_file_are_found(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(StackMemory, "is_open_in", always(True))
    with expect_failure():
        stacks.test_a_script_that_closes_what_that_needs_has_nothing_in_its_files(start, tmp_path)
