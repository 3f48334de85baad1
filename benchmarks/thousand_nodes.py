"""A thousand simulated nodes of 65 workers each against one real Redis and one real leader: how many workers are busy.

A simulated node sends what an agent sends to Redis, at the same times, with the agent's own classes and a connection of
its own. It sends a heartbeat every quarter of a lease, all of which the leader watches; it looks for work as often as a
node whose workers are all busy; it takes a turn when a worker is free, and another one for results that have waited
long enough, or to renew its lease. Nothing runs: a mini-batch is over when its time is up, 10 s give or take a tenth,
and durable one gathering and one sync later.

The nodes share a few processes, so that some wait for Redis while others send. They use the same CPUs as Redis and the
leader; if these can't keep up on this machine, workers wait, and the share of time for which they are busy shows by how
much. Workers start spread over the time of one mini-batch, as in a job that has run for a while.
"""

from __future__ import annotations

import heapq
import multiprocessing
import os
import random
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from benchmarks import Size, data
from benchmarks.measure import own_cpu_seconds
from benchmarks.stage import Stage
from parallelrun_agent.jobs import work_finder
from parallelrun_agent.policy import deliveries, turn_schedule
from parallelrun_agent.policy.worker import NEVER
from parallelrun_agent.settings import AgentSettings
from parallelrun_agent.workers import committer
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.folder.session_keys import SessionKey
from parallelrun_core.ids import new_session
from parallelrun_core.store.agent_queue import AgentQueue
from parallelrun_core.store.nodes import NodeInfo, NodeRegistry
from parallelrun_core.store.registry import Registry
from parallelrun_core.store.seals import Seal
from parallelrun_core.wire.leasing import Delivery, TurnReports
from parallelrun_core.wire.outcome import Outcome, encode
from parallelrun_core.wire.states import JobState, NodeState
from parallelrun_master.settings import MasterSettings

if TYPE_CHECKING:
    from redis import Redis

_AGENT = AgentSettings(node="node", slots=1)
_QUARTER_S = _AGENT.lease_seconds / turn_schedule.TURNS_PER_LEASE
_DURABLE_S = committer.GATHER_S + 0.005
"""From an answer to its being durable: as long as others are gathered, and the syncs of part files and journal."""
_PROCESSES = 4
_FILLED_WITHIN_S = 120.0


class Shape(NamedTuple):
    """What is simulated, and for how long."""

    nodes: int
    workers: int
    run_s: float
    seconds: float
    files: int


@dataclass
class World:
    """What all nodes have in common. The time that counts is set, on the monotonic clock, when all workers are busy."""

    shape: Shape
    job_id: str
    keys: Path
    connect: Callable[[], Redis]
    begins: Synchronized[float]
    ends: Synchronized[float]

    def waited(self, since: float, until: float) -> float:
        """How much of a time of waiting counts."""
        return max(0.0, min(until, self.ends.value) - max(since, self.begins.value))


class Node:
    """One agent, as Redis sees it."""

    def __init__(self, name: str, world: World, draw: random.Random) -> None:
        redis, job_id, workers = world.connect(), world.job_id, world.shape.workers
        self._run_s = world.shape.run_s
        self._world = world
        self._draw = draw
        self._registry, self._nodes = Registry(redis), NodeRegistry(redis)
        self._session = new_session(name)
        self._queue = AgentQueue(
            redis, job_id, session=self._session, node=name, lease_ms=_AGENT.lease_ms, seal=self._seal(world)
        )
        self._info = NodeInfo(
            node=name, session=self._session, host=name, pid=os.getpid(), slots=workers, busy=workers,
            state=NodeState.READY, version=version("parallelrun"), started=time.time(), jobs=[job_id],
        )  # fmt: skip
        self._running: list[tuple[float, Delivery]] = []
        self._free: deque[float] = deque([time.monotonic()] * workers)
        """Since when each idle worker has been so."""
        self._unspread = workers
        """Workers that have not had anything yet."""
        self._gathered: list[tuple[int, str, bytes]] = []
        self._durable_at = NEVER
        self._reports = TurnReports()
        self._report_by = NEVER
        self._ready = 0
        self._joined = False
        self._turn_by = 0.0
        self._beat_at = self._look_at = time.monotonic() + draw.random() * _QUARTER_S
        self.counts = {"turns": 0, "beats": 0, "looks": 0, "done": 0}
        self.waited_s = 0.0

    def _seal(self, world: World) -> Seal:
        key = SessionKey(world.keys, self._session)
        key.publish()
        return Seal(self._session, key.value)

    @property
    def due(self) -> float:
        """When it has something to say next."""
        report_by = min(self._report_by, self._durable_at + deliveries._REPORT_WITHIN_S)
        first = self._running[0][0] if self._running else NEVER
        return min(first, report_by, self._turn_by, self._beat_at, self._look_at)

    @property
    def is_filled(self) -> bool:
        return not self._unspread

    def speak(self) -> None:
        """Say what is due, in an agent's order."""
        now = time.monotonic()
        self._gather(now)
        if now >= self._beat_at:
            self._nodes.beat(self._info, lease_ms=_AGENT.lease_ms)
            self._beat_at = now + _QUARTER_S
            self._count("beats", now)
        if (self._free and self._ready) or now >= min(self._turn_by, self._report_by):
            self._turn(now)
        if now >= self._look_at:
            self._look(now)

    def finish(self) -> None:
        """The time is over: count what is being waited for."""
        over = time.monotonic()
        overdue = [ends for ends, _ in self._running if ends < over]
        self.waited_s += sum(self._world.waited(since, over) for since in (*self._free, *overdue))

    def _gather(self, now: float) -> None:
        if now >= self._durable_at:
            self._reports.decided += self._gathered
            self._gathered = []
            self._report_by = min(self._report_by, self._durable_at + deliveries._REPORT_WITHIN_S)
            self._durable_at = NEVER
        while self._running and self._running[0][0] <= now:
            ended, delivery = heapq.heappop(self._running)
            self._free.append(ended)
            self._gathered.append((delivery.mini_batch, delivery.token, self._outcome(delivery)))
            self._durable_at = min(self._durable_at, now + _DURABLE_S)

    def _turn(self, now: float) -> None:
        sending, self._reports = self._reports, TurnReports()
        self._report_by = NEVER
        answer = self._queue.turn("stay" if self._joined else "join", sending, len(self._free) if self._ready else 0)
        if answer.refused or answer.lost:
            raise RuntimeError(f"{self._session}: {answer.refused} reports were refused; lost: {answer.lost}")
        self._joined, self._ready = True, answer.ready
        self._turn_by = now + _QUARTER_S
        self._count("turns", now)
        self._count("done", now, len(sending.decided))
        begun = time.monotonic()
        for delivery in answer.deliveries:
            takes_s = self._run_s * self._draw.uniform(0.9, 1.1)
            if self._unspread:
                self._unspread -= 1
                takes_s *= self._draw.random()
            self.waited_s += self._world.waited(self._free.popleft(), begun)
            heapq.heappush(self._running, (begun + takes_s, delivery))

    def _look(self, now: float) -> None:
        for active in self._registry.peek():
            if active.state is JobState.PROCESSING:
                self._ready = active.ready
        self._look_at = now + (_AGENT.poll_seconds if self._free else work_finder.ANYWAY_S)
        self._count("looks", now)

    def _count(self, what: str, now: float, many: int = 1) -> None:
        self.counts[what] += many * (now >= self._world.begins.value)

    def _outcome(self, delivery: Delivery) -> bytes:
        return encode(
            Outcome(
                mini_batch=delivery.mini_batch, generation=0, status="done", token=delivery.token, tries=1,
                node=self._info.node, process="process000", part=f"{self._session}.process000", offset=0, length=100,
                crc=1, items=1, rows=1, started=time.time(), elapsed_s=self._run_s, run_s=self._run_s,
                process_s=self._run_s,
            )
        )  # fmt: skip


def simulate(names: list[str], world: World, say: Callable[[Any], None]) -> None:
    """Some of the nodes, in one process; says when all their workers have something, and last what was counted."""
    draw = random.Random(names[0])
    nodes = [Node(name, world, draw) for name in names]
    due = [(node.due, number) for number, node in enumerate(nodes)]
    heapq.heapify(due)
    is_filled, latest_s = False, 0.0
    while (now := time.monotonic()) < world.ends.value:
        at, number = heapq.heappop(due)
        if at > now:
            time.sleep(at - now)
        elif now >= world.begins.value:
            latest_s = max(latest_s, now - max(at, world.begins.value))
        nodes[number].speak()
        heapq.heappush(due, (nodes[number].due, number))
        if not is_filled and nodes[number].is_filled and all(node.is_filled for node in nodes):
            is_filled = True
            say("filled")
    for node in nodes:
        node.finish()
    counts = {what: sum(node.counts[what] for node in nodes) for what in nodes[0].counts}
    say({**counts, "waited_s": sum(node.waited_s for node in nodes), "latest_s": latest_s})


def measure(stage: Stage, job_id: str, shape: Shape, leader: int) -> dict[str, float]:
    """All nodes, until it is over.

    Raises:
        RuntimeError: a process that simulates nodes has ended.
    """
    context = multiprocessing.get_context("fork")
    begins, ends = (context.Value("d", NEVER, lock=False) for _ in range(2))
    world = World(shape, job_id, JobFolder(stage.home, job_id).keys, stage.connect, begins, ends)
    names = [f"node{number:04d}" for number in range(shape.nodes)]
    said, processes = [], []
    for number in range(min(_PROCESSES, shape.nodes)):
        hears, says = context.Pipe(duplex=False)
        process = context.Process(target=simulate, args=(names[number::_PROCESSES], world, says.send), daemon=True)
        process.start()
        says.close()
        said.append(hears)
        processes.append(process)
    pids = {"nodes": [process.pid or 0 for process in processes], "redis": [stage.redis_pid], "leader": [leader]}
    try:
        for hears in said:
            if not hears.poll(_FILLED_WITHIN_S):
                raise RuntimeError(f"not all workers have something within {_FILLED_WITHIN_S:.0f} s")
            hears.recv()
        begins.value = time.monotonic() + shape.run_s  # until filling has left no trace
        time.sleep(shape.run_s)
        before = {part: sum(map(own_cpu_seconds, of)) for part, of in pids.items()}
        ends.value = begins.value + shape.seconds
        time.sleep(max(0.0, ends.value - time.monotonic()))
        used = {f"{part}_cpu": sum(map(own_cpu_seconds, of)) - before[part] for part, of in pids.items()}
        found = [hears.recv() for hears in said]
    except EOFError as error:
        raise RuntimeError("a process that simulates nodes has ended") from error
    finally:
        for process in processes:
            process.kill()
            process.join()
    per_s = {f"{what}_per_s": sum(each[what] for each in found) for what in ("done", "turns", "looks", "beats")}
    return {
        "busy": 1 - sum(each["waited_s"] for each in found) / (shape.nodes * shape.workers * shape.seconds),
        **{name: total / shape.seconds for name, total in (per_s | used).items()},
        "latest_s": max(each["latest_s"] for each in found),
    }


LEADER = """
import sys
from parallelrun_master.leader_process import lead
from parallelrun_master.settings import MasterSettings
lead(MasterSettings.model_validate_json(sys.argv[1]), sys.argv[2])
"""


def main(size: Size) -> dict[str, object]:
    """Measure; returns what the last line says."""
    shape = {
        "tiny": Shape(nodes=5, workers=4, run_s=0.5, seconds=1.0, files=2_000),
        "quick": Shape(nodes=200, workers=65, run_s=10.0, seconds=12.0, files=200_000),
        "full": Shape(nodes=1000, workers=65, run_s=10.0, seconds=30.0, files=1_000_000),
    }[size]
    with Stage() as stage:
        folder, _ = stage.job(inputs=str(data.files(shape.files)), mini_batch_size=1)
        settings = MasterSettings(redis_url=stage.url, root=stage.home).model_dump_json()
        with subprocess.Popen([sys.executable, "-c", LEADER, settings, folder.job_id]) as leader:
            try:
                found = measure(stage, folder.job_id, shape, leader.pid)
                if leader.poll() is not None:
                    raise RuntimeError("the leader has ended")
            finally:
                leader.kill()
    workers = shape.nodes * shape.workers
    print(f"{shape.nodes:,} nodes, {workers:,} workers: {found['busy']:.2%} busy")
    return {
        "nodes": shape.nodes,
        "workers": workers,
        "run_s": shape.run_s,
        **{name: f"{value:.0f}" if name.endswith("_per_s") else f"{value:.4f}" for name, value in found.items()},
    }
