"""A thousand simulated nodes of 65 workers each against one real Redis and one real leader: how many workers are busy.

A node is what its agent says to Redis: the real queue code on a connection of its own, one turn when a worker is free,
which carries the results that were made durable by then, and a turn for what is left within 20 ms. Nothing runs: a
mini-batch is over when its time is up, 10 s give or take a tenth. All nodes are in one process, one after the other; if
that, Redis and the leader can't keep up on this machine, workers wait, and the share of time for which they are busy
says by how much. Workers begin spread over the time of one mini-batch, as in a job that has run for a while.
"""

from __future__ import annotations

import heapq
import os
import random
import subprocess
import sys
import time
from dataclasses import dataclass, field

from benchmarks import Size, data
from benchmarks.measure import cpu_seconds
from benchmarks.stage import Stage
from parallelrun_core.outcome import Outcome, encode
from parallelrun_core.store.agent_queue import AgentQueue, Delivery, Reports
from parallelrun_master.lead import SETTINGS
from parallelrun_master.settings import MasterSettings

_DURABLE_S = 0.02
_LEASE_MS = 8_000
_RENEW_S = 2.0


@dataclass
class Node:
    """One agent, as Redis sees it."""

    name: str
    queue: AgentQueue
    idle: int
    reports: Reports = field(default_factory=Reports)
    running: list[tuple[float, Delivery]] = field(default_factory=list)
    said_at: float = 0.0


class Simulation:
    """All nodes of one job, in one thread."""

    def __init__(self, stage: Stage, job_id: str, nodes: int, workers: int, run_s: float) -> None:
        self._run_s = run_s
        self._draw = random.Random(7)
        self._workers = nodes * workers
        self._events: list[tuple[float, int]] = []
        self.turns = self.done = 0
        self.unnoticed_s = 0.0
        """Time for which workers had been done, and nobody had looked."""
        self.late_s = 0.0
        self.nodes = []
        for number in range(nodes):
            name = f"node{number:04d}"
            queue = AgentQueue(stage.connect(), job_id, session=f"{name}-00000000", node=name, lease_ms=_LEASE_MS)
            self.nodes.append(Node(name, queue, idle=workers))

    def fill(self) -> None:
        """Give every worker something; they end spread over one mini-batch's time."""
        waiting = list(self.nodes)
        while waiting:
            for node in waiting:
                self._turn(node, spread=True)
            waiting = [node for node in waiting if node.idle]
            time.sleep(0.05 if waiting else 0)  # the leader is publishing yet
        now = time.monotonic()
        for number, node in enumerate(self.nodes):
            heapq.heappush(self._events, (min(node.running[0][0], now + _RENEW_S), number))

    def run(self, seconds: float) -> float:
        """Go on for so long; returns the share of that for which workers had something to run."""
        now = last = began = time.monotonic()
        idle_s, idle = 0.0, sum(node.idle for node in self.nodes)
        while now < began + seconds:
            due, number = heapq.heappop(self._events)
            now = time.monotonic()
            if due > now:
                time.sleep(due - now)
                now = time.monotonic()
            self.late_s = max(self.late_s, now - due)
            node = self.nodes[number]
            idle_s += idle * (now - last)
            last, before = now, node.idle
            self._turn(node)
            idle += node.idle - before
            following = min(node.running[0][0] if node.running else now + 0.05, node.said_at + _RENEW_S)
            if node.reports:
                following = min(following, now + _DURABLE_S)
            heapq.heappush(self._events, (following, number))
        # A mini-batch that nobody has looked at since it ended has left its worker waiting, too.
        overdue_s = sum(max(0.0, now - end) for node in self.nodes for end, _ in node.running)
        return 1 - (idle_s + overdue_s + self.unnoticed_s) / (self._workers * (now - began))

    def _turn(self, node: Node, *, spread: bool = False) -> None:
        now = time.monotonic()
        sending, node.reports = node.reports, Reports()
        while node.running and node.running[0][0] <= now:
            ended, delivery = heapq.heappop(node.running)
            self.unnoticed_s += now - ended
            node.idle += 1
            node.reports.decided.append((delivery.mini_batch, delivery.token, self._outcome(node, delivery)))
        answer = node.queue.turn("join", sending, node.idle)
        self.turns += 1
        self.done += len(sending.decided)
        node.said_at = now
        if answer.refused:
            raise RuntimeError(f"{answer.refused} reports were refused")
        for delivery in answer.deliveries:
            whole_s = self._run_s * self._draw.uniform(0.9, 1.1)
            heapq.heappush(node.running, (now + (whole_s * self._draw.random() if spread else whole_s), delivery))
        node.idle -= len(answer.deliveries)

    def _outcome(self, node: Node, delivery: Delivery) -> bytes:
        return encode(
            Outcome(
                mini_batch=delivery.mini_batch, generation=0, status="done", token=delivery.token, tries=1,
                node=node.name, process="process000", part=f"{node.name}.process000", offset=0, length=100, crc=1,
                items=1, rows=1, started=time.time(), elapsed_s=self._run_s, run_s=self._run_s, process_s=self._run_s,
            )
        )  # fmt: skip


def main(size: Size) -> dict[str, object]:
    """Measure; returns what the last line says."""
    nodes, workers, run_s, seconds, files = {
        "tiny": (5, 4, 0.5, 1.0, 2_000),
        "quick": (100, 65, 10.0, 12.0, 200_000),
        "full": (1000, 65, 10.0, 30.0, 1_000_000),
    }[size]
    with Stage() as stage:
        folder, _ = stage.job(inputs=str(data.files(files)), mini_batch_size=1)
        simulation = Simulation(stage, folder.job_id, nodes, workers, run_s)
        settings = MasterSettings(redis_url=stage.url, root=stage.home).model_dump_json()
        command = [sys.executable, "-c", f"from parallelrun_master.lead import lead; lead({folder.job_id!r})"]
        with subprocess.Popen(command, env={**os.environ, SETTINGS: settings}) as leader:
            try:
                simulation.fill()
                simulation.run(run_s)  # until filling has left no trace
                parts = {"nodes": os.getpid(), "redis": stage.redis_pid, "leader": leader.pid}
                before = {part: cpu_seconds([pid]) for part, pid in parts.items()}
                simulation.turns = simulation.done = 0
                simulation.unnoticed_s = 0.0
                busy = simulation.run(seconds)
                used = {f"{part}_cpu": (cpu_seconds([pid]) - before[part]) / seconds for part, pid in parts.items()}
                if leader.poll() is not None:
                    raise RuntimeError("the leader has ended")
            finally:
                leader.kill()
    figures = {f"{part}": f"{share:.2f}" for part, share in used.items()}
    print(f"{nodes:,} nodes, {nodes * workers:,} workers: {busy:.2%} busy; cores used: {figures}")
    return {
        "workers": nodes * workers,
        "run_s": run_s,
        "busy": f"{busy:.4f}",
        "done_per_s": round(simulation.done / seconds),
        "turns_per_s": round(simulation.turns / seconds),
        "latest_s": f"{simulation.late_s:.2f}",
        **figures,
    }
