"""Whole jobs with faults that wait for a service: several mini-batches in flight, a limit, and answers remembered."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.waits.scripts import CLIENT
from benchmarks.waits.service import Calls, Service
from parallelrun_core.limits.definition import Limit, limit_catalog
from parallelrun_core.wire.states import JobState
from tests.chaos.faults import FaultInjector
from tests.chaos.oracle import Finding, examine
from tests.cluster import Cluster

MINI_BATCHES: Final = 500
ITEMS: Final = 2
_CALLS_PER_MINUTE: Final = 3000
"""So a job takes 20 s on any machine, long enough for many kills."""
_LEASE_S: Final = 0.8
_KILL_EVERY_S: Final = 1.5
_MOST_KILLS: Final = 25
"""Whatever a dead worker had begun is then run alone, so that faults without an end would leave no time for it."""
_SERVICE_DIES_EVERY_S: Final = 3.0
_ENTRY_SCRIPT: Final = (
    CLIENT
    + """

import os, time, zlib
from parallelrun.script import aremember, limit, recall

async def init():
    global client, remembered
    client = ServiceClient(int(os.environ["PORT"]))
    remembered = os.open(os.environ["REMEMBERED"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    open(os.path.join(os.environ["MARKS"], str(os.getpid())), "w").close()

async def ask(name):
    while True:
        try:
            async with limit("service") as permit:
                if (answer := recall(name)) is not None:
                    return answer
                try:
                    answer = await client.call(name)
                except Refused as refused:
                    permit.retry_after(refused)
                    continue
            await aremember(name, answer)
            os.write(remembered, f"{time.monotonic():.6f} {name}\\n".encode())
            return answer
        except OSError:
            await asyncio.sleep(0.1)

async def run(mini_batch):
    rows = []
    for path in mini_batch:
        name = os.path.basename(path)
        answer = recall(name) or await ask(name)
        rows.append(f"{answer} {zlib.crc32(answer.encode())}")
    return rows
"""
)
"""MARKS: as in `oracle`. REMEMBERED: a file that gets the time after each `aremember`."""


@dataclass(frozen=True)
class WaitingReport:
    """The end of one job with faults that waited."""

    finding: Finding
    faults: Counter[str]
    calls: int
    paid_twice: int
    """Calls that began though their answer was remembered."""
    twice_unanswered: int
    """Other calls that were made again: their answer, or the process that had it, was lost first."""


def kills(*, seed: int, mini_batches: int = MINI_BATCHES, without: str = "") -> WaitingReport:
    """Every role is killed, and agents are paused, while four workers have eight mini-batches each in flight."""
    with Cluster(nodes=2, slots=2, lease_s=_LEASE_S, leader_s=1, api=True, without=without) as cluster:
        marks = cluster.home / "marks"
        marks.mkdir()
        remembered = cluster.home / "remembered.txt"
        limit_catalog(cluster.root).define(Limit(name="service", requests_per_minute=_CALLS_PER_MINUTE, in_flight=24))
        with Service(cluster.home) as service:
            job = cluster.submit(
                _ENTRY_SCRIPT,
                inputs=cluster.files(mini_batches * ITEMS),
                mini_batch_size=ITEMS,
                mini_batches_in_flight=8,
                rate_limits=["service"],
                run_max_try=1000,
                lost_leases=1000,
                environment_variables={
                    "MARKS": str(marks), "REMEMBERED": str(remembered), "PORT": str(service.port),
                },
            )  # fmt: skip
            injector = FaultInjector(
                cluster,
                seed=seed,
                marks=marks,
                redis_restarts=2,
                pauses=True,
                all_roles=True,
                every_s=_KILL_EVERY_S,
                most_kills=_MOST_KILLS,
            )
            with injector, _dying(service, injector.count):
                result = cluster.result(job, timeout_s=300)
            calls = service.take_calls()
        if result.state is not JobState.COMPLETED:
            raise AssertionError(f"the job ended {result.state}: {result.failure}")
        finding = examine(cluster.folder(job), result)
        paid = _paid_twice(calls, remembered)
        again = len(calls.names) - len(set(calls.names))
        return WaitingReport(finding, injector.count, len(calls.names), paid, again - paid)


def _paid_twice(calls: Calls, remembered: Path) -> int:
    """Return how many calls began after one for the same name was remembered."""
    since: dict[str, float] = {}
    for line in remembered.read_text().splitlines():
        at, name = line.split(" ")
        since.setdefault(name, float(at))
    return sum(at > since.get(name, float("inf")) for at, name in zip(calls.times, calls.names, strict=True))


@contextmanager
def _dying(service: Service, count: Counter[str]) -> Iterator[None]:
    """Kill the service now and then."""
    done = threading.Event()

    def work() -> None:
        while not done.wait(_SERVICE_DIES_EVERY_S):
            service.kill()
            service.start()
            count["service_kills"] += 1

    thread = threading.Thread(target=work, name="service-kills")
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
