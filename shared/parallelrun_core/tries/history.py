"""The tries of one job: all that its pictures are made of.

They are read from the decision log, the log of retries and the report of tries, which a leader writes anyway and which
stay when the job has ended. Each look reads what is new since the one before, for a limited time: so a first look at a
million mini-batches takes several requests, none of which takes long.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import chain
from operator import attrgetter
from threading import Lock
from typing import TYPE_CHECKING, Final, NamedTuple, cast

import msgspec
import numpy as np

from parallelrun_core.errors import Conflict
from parallelrun_core.folder.decisions import NAME as DECISIONS
from parallelrun_core.layout import Logs
from parallelrun_core.tries.columns import ByMiniBatch, Columns
from parallelrun_core.tries.followed_log import FollowedLog, WasCut
from parallelrun_core.tries.kinds_so_far import KindsSoFar
from parallelrun_core.tries.summary import DONE, FAILED, LOST, RETRIED, Summary
from parallelrun_core.tries.worker_phases import FollowedReport, WorkerPhase
from parallelrun_core.wire.outcome import (
    BriefOutcome,
    Outcome,
    brief_outcomes,
    decode_list,
    encode_list,
    encoded_outcomes,
)

if TYPE_CHECKING:
    from parallelrun_core.folder.job_folder import JobFolder
    from parallelrun_core.folder.records import JobRecord

RETRIES: Final = "retries"
_CODES: Final = {"done": DONE, "failed": FAILED, "retry": RETRIED, "lost": LOST}
_OFFSET_BITS: Final = 42
_AT_ONCE: Final = 4096
"""Tries that are put into columns together: fewer cost more each."""
_CLOCK_S: Final = 5.0
"""How far the clock of a node may be behind that of the API."""
_KINDS: Final = {
    "mini_batch": "u4", "status": "u1", "tries": "u2", "generation": "u2", "lane": "i4", "begin": "f8",
    "elapsed_s": "f4", "run_s": "f4", "load_s": "f4", "items": "u4", "failed_items": "u4", "rows": "u4",
    "is_own": "?", "place": "i8", "nth": "u4",
}  # fmt: skip
MOST_TRIES: Final = 10_000_000
"""About 700 MB, the most that one job may take."""
_TOO_LARGE: Final = (
    f"This job has more than {MOST_TRIES:,} tries, of which no pictures are made. Its reports have them "
    "(logs/sys/job_report), and `parallelrun job advise` says what they mean."
)
_MOST: Final = 2**32 - 1
_MOST_TRIES: Final = 2**16 - 1
_NUMERIC: Final = (
    "mini_batch", "tries", "generation", "started", "elapsed_s", "run_s", "load_s", "items", "rows",
)  # fmt: skip
_NUMBERS: Final = attrgetter(*_NUMERIC)
_NOTHING: Final = msgspec.Raw(b"null")
_STATUS: Final = attrgetter("status")
_WORKER: Final = attrgetter("node", "process")


class RecordedWorker(NamedTuple):
    """A worker process, by the names in the records."""

    node: str
    process: str


class _Lanes(dict[RecordedWorker, int]):
    """The lane numbers of workers: a new one has the next; -1 where none was to blame."""

    def __missing__(self, worker: tuple[str, str]) -> int:
        if not worker[1]:
            return -1
        self[RecordedWorker(*worker)] = number = len(self)
        return number


class RecordPosition(NamedTuple):
    """The position of the record with an outcome, which may have others, too."""

    log: str
    term: int
    offset: int


class History:
    """The tries of one job. Take `lock` to read; `refresh` takes it itself."""

    def __init__(self, folder: JobFolder, record: JobRecord) -> None:
        self.lock = Lock()
        self.record = record
        self.folder = folder
        self.revision = 0
        """Another one whenever something is new."""
        self.is_too_large = False
        self.is_begun = False
        """A snapshot was looked for: one that is written later has nothing new."""
        self.begin()

    def begin(self) -> None:
        """Forget all that was read."""
        self._logs = {name: FollowedLog(self.folder.path, name) for name in (DECISIONS, RETRIES)}
        self._report = FollowedReport(Logs(self.folder.logs).job_report / "processed_mini-batches.csv")
        self.tries = Columns(**_KINDS)
        self.decided_by = ByMiniBatch("i4", -1)
        """Of each mini-batch, the row of the try that was decided upon; -1: none was."""
        self.has_failed_try = ByMiniBatch("u1", 0)
        self.category_by = ByMiniBatch("u1", 0)
        """Of each mini-batch that failed when it was decided last, one more than its place in `categories`; 0: none."""
        self.categories: list[str] = []
        """Categories of errors with which mini-batches have failed."""
        self.workers = _Lanes()
        """From each worker to the number of its lane, which `lane` has; -1 there: no worker was to blame."""
        self.phases: list[WorkerPhase] = []
        self.saved_tries = 0
        """Tries that are in the job's snapshot, or could not be stored there."""
        self.errors = KindsSoFar()
        self.summary = Summary()
        self.read_share = 0.0

    def refresh(self, budget_s: float) -> None:
        """Read what is new, for about so long.

        Raises:
            CorruptLog, NewerSchema: the logs can't be read.
            Conflict: there are more tries than fit into memory.
        """
        until = time.monotonic() + budget_s
        with self.lock:
            if self.is_too_large:
                raise Conflict(_TOO_LARGE)
            before = self.tries.count, len(self.phases)
            try:
                self._read(lambda: time.monotonic() < until)
            except WasCut:
                self.begin()
                self._read(lambda: time.monotonic() < until)
            self._open_again()
            if self.tries.count > MOST_TRIES:
                self.begin()
                self.is_too_large = True
                raise Conflict(_TOO_LARGE)
            self.read_share = self._share_read()
            self.revision += (self.tries.count, len(self.phases)) != before

    def place(self, row: int) -> RecordPosition:
        """Return where the record of a try is."""
        log = RETRIES if self.tries["status"][row] == RETRIED else DECISIONS
        place = int(self.tries["place"][row])
        return RecordPosition(log, place >> _OFFSET_BITS, place & ((1 << _OFFSET_BITS) - 1))

    @property
    def positions(self) -> dict[str, dict[int, int]]:
        """The byte up to which each term's file was read, of each log."""
        return {name: dict(log.positions) for name, log in self._logs.items()}

    @positions.setter
    def positions(self, positions: dict[str, dict[int, int]]) -> None:
        for name, log in self._logs.items():
            log.positions = dict(positions.get(name, {}))

    @property
    def report_at(self) -> int:
        """The byte up to which the report of tries was read."""
        return self._report.at

    @report_at.setter
    def report_at(self, at: int) -> None:
        self._report.at = at

    @property
    def bytes(self) -> int:
        """About how much memory it takes."""
        return self.tries.bytes + self.decided_by.bytes + self.has_failed_try.bytes + self.summary.bytes

    def _share_read(self) -> float:
        parts = [*(log.left_bytes() for log in self._logs.values()), self._report.left_bytes()]
        unread, total = (sum(column) for column in zip(*parts, strict=True))
        return 1.0 if not unread else round(min(0.999, 1 - unread / total), 3)

    def _read(self, may_go_on: Callable[[], bool]) -> None:
        for log in self._logs.values():
            batch: list[BriefOutcome] = []
            places: list[int] = []
            lengths: list[int] = []
            try:
                for term, at, raw in log.new_records():
                    outcomes = brief_outcomes(raw)
                    for failed in _failures(outcomes, raw):
                        self._add_failure(failed)
                    batch += outcomes
                    places.append((term << _OFFSET_BITS) | at)
                    lengths.append(len(outcomes))
                    if len(batch) >= _AT_ONCE:
                        self._add(batch, places, lengths)
                        batch, places, lengths = [], [], []
                        if not may_go_on():
                            break
            finally:  # they count as read, even if reading on has failed
                if batch:
                    self._add(batch, places, lengths)
        self.phases += self._report.new(may_go_on)

    def _add(self, batch: list[BriefOutcome], places: list[int], lengths: list[int]) -> None:
        """Add the outcomes of some records.

        Args:
            places: of each record.
            lengths: how many outcomes each has.
        """
        first, count = self.tries.count, len(batch)
        # All numbers at once: a loop for each column would take most of the time.
        values = chain.from_iterable(map(_NUMBERS, batch))
        columns = np.fromiter(values, "f8", count * len(_NUMERIC)).reshape(count, -1).T
        numbers, tries, generation, started, elapsed_s, run_s, load_s, items, rows = columns
        numbers = numbers.astype("u4")
        status = np.fromiter(map(_CODES.__getitem__, map(_STATUS, batch)), "u1", count)
        lane_of = cast("dict[tuple[str, str], int]", self.workers)
        lanes = np.fromiter(map(lane_of.__getitem__, map(_WORKER, batch)), "i4", count)
        earliest = self.record.submitted - _CLOCK_S if self.record.resumed else 0.0
        self.tries.extend(
            mini_batch=numbers,
            status=status,
            tries=np.minimum(tries, _MOST_TRIES),
            generation=generation,
            lane=lanes,
            begin=started,
            elapsed_s=elapsed_s,
            run_s=run_s,
            load_s=load_s,
            items=np.minimum(items, _MOST),
            # As `Outcome.failed_items` has it.
            failed_items=np.minimum(
                np.where(status == FAILED, np.maximum(1, items), np.maximum(0, items - rows)), _MOST
            ),
            rows=np.minimum(rows, _MOST),
            is_own=(started > earliest) & (status != LOST),
            place=np.repeat(places, lengths),
            nth=np.concatenate([np.arange(length) for length in lengths]),
        )
        added = np.arange(first, self.tries.count, dtype="i4")
        is_decided = status != RETRIED
        self.decided_by.set(numbers[is_decided], np.where(status == LOST, -1, added)[is_decided])
        self.has_failed_try.set(numbers[(status == RETRIED) | (status == FAILED)], 1)
        self.summary.add(self.tries, first)
        self.summary.levels.touch(numbers)

    def _add_failure(self, outcome: Outcome) -> None:
        self.errors.add(outcome)
        if outcome.status == "failed" and outcome.failure is not None:
            if (category := outcome.failure.category) not in self.categories:
                self.categories.append(category)
            self.category_by.set(np.array([outcome.mini_batch]), self.categories.index(category) + 1)

    def _open_again(self) -> None:
        """Count as undecided what has failed, and was reopened by the user since."""
        for reopening in self.folder.reopenings() if self.folder.generation() else ():
            if not reopening.retry_failed:
                continue
            rows = self.decided_by.range(0, self.decided_by.end)
            numbers = np.flatnonzero(rows >= 0)
            rows = rows[numbers]
            is_open = (self.tries["status"][rows] == FAILED) & (self.tries["generation"][rows] < reopening.generation)
            if reopening.mini_batches is not None:
                is_open &= np.isin(numbers, reopening.mini_batches)
            self.decided_by.set(numbers[is_open], -1)
            self.summary.levels.touch(numbers[is_open])


def _failures(outcomes: list[BriefOutcome], raw: bytes) -> list[Outcome]:
    """Return the outcomes of a record that have a failure: only these are read as a whole."""
    failed = [at for at, each in enumerate(outcomes) if each.failure != _NOTHING]
    if not failed:
        return []
    encoded = encoded_outcomes(raw)
    return decode_list(encode_list([encoded[at] for at in failed]))
