"""Every kind of file of a job's folder, what a disk can do to it, and whether its leader dies at the same time."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

import psutil

from parallelrun_api.submission.reopening import Reopenings
from parallelrun_core.errors import Conflict, CorruptLog, NotFound, Unavailable
from parallelrun_core.folder.decisions import read_outcomes
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.folder.records import JobResult
from parallelrun_core.layout import Logs
from parallelrun_core.store.keys import JobKeys
from parallelrun_core.store.leader_queue import LeaderQueue
from parallelrun_core.wire.states import JobState
from tests.cluster import Cluster

FILES: Final = 100
_HELD_FROM: Final = 60
_DECIDED: Final = 40
_DEADLINE_S: Final = 120.0
_RENEWALS: Final = 30
"""Of a lease, in which a leader has had the time to compare its books with Redis more than once."""

_SCRIPT: Final = """
import os, time
from pathlib import Path

GATE, TRIED = Path({gate!r}), Path({tried!r})

def run(mini_batch):
    rows = []
    for name in mini_batch:
        number = int(Path(name).stem.rpartition("-")[2])
        if number % 25 == 3 and not (TRIED / str(number)).exists():
            (TRIED / str(number)).touch()
            raise ValueError("the first try fails")
        while number >= {held_from} and not GATE.exists():
            time.sleep(0.01)
        rows.append(f"row {{number}} " + "x" * (number % 40))
    return rows
"""

Damage = Callable[[Path], object]


def flip(path: Path) -> None:
    """One bit in the middle."""
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    with path.open("r+b") as file:  # the same file, which others may have open
        file.write(data)


def truncate(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 2)


DAMAGE: Final[dict[str, Damage]] = {"flip": flip, "truncate": truncate, "delete": Path.unlink}


def _newest(pattern: str) -> Callable[[JobFolder], Path]:
    def find(folder: JobFolder) -> Path:
        paths = (path for path in folder.path.glob(pattern) if path.stat().st_size)
        return max(paths, key=lambda path: (path.stat().st_size, path.name))

    return find


KINDS: Final[dict[str, Callable[[JobFolder], Path]]] = {
    "job.json": lambda folder: folder.layout.record,
    "inputs.json": lambda folder: folder.layout.inputs,
    "manifest": _newest("manifest.*"),
    "decisions": _newest("decisions.*"),
    "retries": _newest("retries.*"),
    "journal": _newest("journals/*"),
    "part": _newest("parts/*"),
    "reopened": lambda folder: folder.layout.reopening(1),
    "report": lambda folder: Logs(folder.logs).job_report / "processed_mini-batches.csv",
    "code": lambda folder: folder.code(folder.record()) / "entry.py",
    "result.json": lambda folder: folder.layout.result(folder.generation()),
    "output": lambda folder: folder.outputs / "parallel_run_step.txt",
}
_OF_THE_END: Final = ("result.json", "output")


class Case(NamedTuple):
    """One kind of damage."""

    kind: str
    how: str
    is_leader_killed: bool

    def __str__(self) -> str:
        return f"{self.kind}-{self.how}-{'killed' if self.is_leader_killed else 'alive'}"


CASES: Final = [Case(*each) for each in itertools.product(KINDS, DAMAGE, (False, True))]


class Verdict(NamedTuple):
    """What became of a job."""

    is_exact: bool
    """The output has every row once, in order, at once or after what was named was put back and the job resumed."""
    is_hung: bool
    said: str
    """What was named as damaged; empty: it didn't matter."""

    def __str__(self) -> str:
        how = "hung" if self.is_hung else "exact" if self.is_exact else "WRONG"
        return f"{how}{': ' if self.said else ''}{self.said}"


def play(cluster: Cluster, case: Case, *, deadline_s: float = _DEADLINE_S, is_to_hang: bool = False) -> Verdict:
    """Damage one file of one job of a cluster, and see how the job ends.

    Args:
        deadline_s: a job that doesn't end within this time is hung.
        is_to_hang: it is hung already when a leader has left it alone for long enough with nothing of it on Redis.
    """
    return _Play(cluster, case, deadline_s, is_to_hang=is_to_hang).run()


class _Stillness:
    """Tells when a leader goes on leading a job of which nothing waits, and nothing is with a node."""

    def __init__(self, cluster: Cluster, job_id: str) -> None:
        self._redis, self._leader = cluster.redis, JobKeys(job_id).leader
        self._queue = LeaderQueue(cluster.redis, job_id)
        self._lease_ms = self._renewals = 0

    def lasts(self) -> bool:
        """Return whether that has been so for many renewals of the leader's lease; to be asked often."""
        if any(self._queue.whereabouts()):
            self._renewals = 0
        lease_ms = int(self._redis.pttl(self._leader))
        self._renewals += lease_ms > self._lease_ms
        self._lease_ms = lease_ms
        return self._renewals > _RENEWALS


class _Play:
    def __init__(self, cluster: Cluster, case: Case, deadline_s: float, *, is_to_hang: bool) -> None:
        self._cluster, self._case, self._deadline_s, self._is_to_hang = cluster, case, deadline_s, is_to_hang
        self._reopenings = Reopenings(cluster.root, cluster.redis)
        self._own = cluster.home / f"{case}-{time.monotonic_ns()}"
        self._gate = self._own / "gate"
        (self._own / "tried").mkdir(parents=True)

    def run(self) -> Verdict:
        case, cluster = self._case, self._cluster
        script = _SCRIPT.format(gate=str(self._gate), tried=str(self._own / "tried"), held_from=_HELD_FROM)
        script += f"# {self._own.name}\n"  # so that each case has a snapshot of its own
        job = cluster.submit(script, inputs=cluster.files(FILES), mini_batch_size=1, run_max_try=3)
        self._folder = cluster.folder(job)
        self._half_way()
        if case.kind == "reopened":
            cluster.registry.move(job, JobState.CANCELED)
            cluster.result(job)
            cluster.kill("node000")  # nobody knows the new generation but who leads it
            self._resume()
            published = LeaderQueue(cluster.redis, job).published_generation
            cluster.until(lambda: published() == 1, "the new generation is published")
            self._half_way()
        if case.kind in _OF_THE_END:
            self._gate.touch()
            cluster.result(job)
            cluster.until(lambda: not cluster.registry.is_active(job), "the job is retired")
        path = KINDS[case.kind](self._folder)
        before = path.read_bytes()
        mode = path.stat().st_mode
        if mode & 0o200 == 0:
            path.chmod(0o600)
        DAMAGE[case.how](path)
        cluster.restart_dead()
        if case.is_leader_killed:
            self._kill_leader()
        self._gate.touch()
        return self._verdict(path, before)

    def _half_way(self) -> None:
        def count() -> int:
            return sum(each.status == "done" for each in read_outcomes(self._folder.path))

        self._cluster.until(lambda: count() >= _DECIDED, f"{self._case}: half of it is decided", _DEADLINE_S)
        self._cluster.until(lambda: bool(self._cluster.leaders()), "somebody leads")

    def _kill_leader(self) -> None:
        for process in self._cluster.leaders():
            with suppress(psutil.NoSuchProcess):
                process.kill()

    def _resume(self) -> None:
        until = time.monotonic() + _DEADLINE_S
        while True:
            try:
                return self._reopenings.resume(self._folder.job_id, accept_changed_inputs=False)
            except (Unavailable, Conflict):
                if time.monotonic() > until:
                    raise
                time.sleep(0.1)

    def _ended(self) -> JobResult | str:
        """How the job has ended, or what is wrong with that; empty: it goes on, whatever its folder says."""
        if self._cluster.registry.is_active(self._folder.job_id):
            return ""
        try:
            return self._folder.result() or ""
        except CorruptLog as error:
            return str(error)

    def _wait(self) -> JobResult | str:
        until, stillness = time.monotonic() + self._deadline_s, _Stillness(self._cluster, self._folder.job_id)
        while not (ended := self._ended()) and time.monotonic() < until:
            if self._is_to_hang and stillness.lasts():
                break
            time.sleep(0.02)
        return ended

    def _verdict(self, path: Path, before: bytes) -> Verdict:
        said = ""
        if self._case.kind == "output":
            said = f"{path.name} is not the output of which the result has the sha256"
            path.unlink(missing_ok=True)
            self._resume()
        elif self._case.kind == "result.json" and self._case.how == "delete":
            said = "the result is missing"
            self._resume()
        ended = self._wait()
        if not isinstance(ended, JobResult) and not ended:
            return Verdict(is_exact=False, is_hung=True, said=self._last_words())
        if not isinstance(ended, JobResult) or ended.state is not JobState.COMPLETED:
            said = (
                ended
                if isinstance(ended, str)
                else f"{ended.failure.code}: {ended.failure.summary}"
                if ended.failure
                else ""
            )
            if not said:
                return Verdict(is_exact=False, is_hung=False, said=f"ended as {ended} for no reason")
            path.write_bytes(before)
            if isinstance(ended, JobResult):
                self._resume()
            ended = self._wait()
        if not isinstance(ended, JobResult):
            return Verdict(is_exact=False, is_hung=True, said=said)
        return Verdict(is_exact=self._is_exact(ended), is_hung=False, said=said or "; ".join(ended.warnings))

    def _is_exact(self, result: JobResult) -> bool:
        rows = [f"row {number} " + "x" * (number % 40) for number in range(FILES)]
        return (
            result.state is JobState.COMPLETED
            and (result.progress.done, result.progress.rows, result.progress.failed) == (FILES, FILES, 0)
            and self._cluster.output(result) == rows
        )

    def _last_words(self) -> str:
        with suppress(NotFound):
            status = self._cluster.registry.status(self._folder.job_id)
            return f"{status.state}, {status.progress.decided} of {status.progress.scheduled}, {status.failure}"
        return "Redis doesn't know it"


def _said(ended: JobResult | str) -> str:
    if isinstance(ended, str):
        return ended
    return f"{ended.failure.code}: {ended.failure.summary}" if ended.failure else ""


def all_of(kinds: str) -> Iterator[Case]:
    """The cases of these kinds, separated by commas; all of them when there are none."""
    wanted = kinds.split(",") if kinds else [*KINDS]
    return (case for case in CASES if case.kind in wanted)
