"""What a leader makes of its job's stream, and of the journals when it doesn't believe the stream."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from parallelrun_core.folder.decisions import read_decisions
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.folder.record_log import RecordWriter
from parallelrun_core.store.outcome_stream import StreamEntry
from parallelrun_core.wire.outcome import Failure, InitFailure, Outcome, encode_all
from parallelrun_master.leader.intake import Intake
from parallelrun_master.leader.job_context import JobContext
from tests.twins.sabotage import nothing
from tests.unit.core.factories import failed, outcome
from tests.unit.master import factories


class Job:
    """A job with books and journals; its stream is a list, and the init() failures that are passed on are counted."""

    def __init__(self, root: Path) -> None:
        self.folder = JobFolder(root, "job")
        self.folder.journals.mkdir(parents=True)
        self.entries: list[StreamEntry] = []
        self.init_failures: list[InitFailure] = []
        self.books = factories.ledger(self.folder.path, self, 1)
        self.job_id, self.generation = "job", 0
        led: Any = SimpleNamespace(
            folder=self.folder, ledger=self.books, queue=self,
            log=SimpleNamespace(warning=nothing, info=nothing), reports=SimpleNamespace(say=nothing),
        )  # fmt: skip
        completion: Any = SimpleNamespace(
            recorded=nothing, init_failed=lambda failure, *_: self.init_failures.append(failure)
        )
        nodes: Any = SimpleNamespace(has_prepared=nothing, slots={})
        window: Any = SimpleNamespace(decided=nothing)
        self._intake = Intake(cast(JobContext, led), window, completion, None, nodes)

    def add(self, *outcomes: Outcome, **fields: Any) -> None:
        """Something comes in."""
        self.entries.append(StreamEntry(b"%d-0" % (len(self.entries) + 1), outcomes=outcomes, **fields))

    def read_entries(self, after: bytes, *_: object, block_ms: int | None) -> list[StreamEntry]:
        return [entry for entry in self.entries if int(entry.entry_id[:-2]) > int(after[:-2])]

    def announce(self, *_: object) -> None:
        raise ConnectionError("Redis is away")

    def forget(self, up_to: bytes) -> None:
        pass

    def step(self) -> None:
        """Read and record what has come in, as a leader does."""
        self._intake.record(self._intake.read(1.0, wait_ms=0), 1.0)
        self._intake.mend(1.0)

    def decided(self) -> list[tuple[int, str]]:
        return [(each.mini_batch, each.status) for each in read_decisions(self.folder.path)]


def test_a_failed_try_in_a_journal_is_no_decision_while_its_successor_may_report(tmp_path: Path) -> None:
    """Its delivery was lost, and the next one has been reported, which the leader is yet to read."""
    job = Job(tmp_path)
    journal = RecordWriter(job.folder.journals / "session")
    journal.append(encode_all([failed(0, token="lost"), outcome(1, length=0, part="", rows=0)]))
    journal.sync()
    journal.close()
    job.add(refused="nobody has sealed it")
    job.step()
    assert job.decided() == [(1, "done")]
    job.add(outcome(0, token="next"))
    job.step()
    job.books.close()
    assert job.decided() == [(1, "done"), (0, "done")]


def init_failed(started: float) -> InitFailure:
    return InitFailure("node", "process000", Failure("INIT_EXCEPTION", "ValueError: bad", "Traceback"), started, 0.5)


def test_a_failure_of_init_counts_once_also_after_redis_came_back(tmp_path: Path) -> None:
    """Or a job with few slots would be given up for failures that it never had."""
    job = Job(tmp_path)
    job.add(failed(0), failed(1))
    job.add(init_failure=init_failed(1.0))
    with pytest.raises(ConnectionError):  # the error that is the first of its kind can't be announced
        job.step()
    job.books.start_over()
    job.step()
    assert len(job.init_failures) == 1
    job.add(init_failure=init_failed(2.0))
    job.step()
    job.books.close()
    assert len(job.init_failures) == 2
