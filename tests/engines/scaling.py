"""`python -m tests.engines.scaling slurm`: no nodes, ten, and none again, for three jobs in a row; how long nodes idle.

The second job comes while the nodes of the first one leave, the third one when all have gone. The exit code is 0 if all
nodes were there for each job and none at the end, none was lost, and they ran mini-batches for 95 % of the time that
they were there: what workers need to start, and nodes to leave, is idle time as well.
"""

from __future__ import annotations

import argparse
import signal
import sys
import threading
import time
from dataclasses import dataclass, field
from typing import Final

from parallelrun_core.folder.decisions import read_decisions
from parallelrun_core.store.nodes import NodeRegistry
from parallelrun_core.wire.states import JobState
from tests.acceptance.http_user import zip_of
from tests.engines import targets
from tests.engines.nodes import Provisioned
from tests.engines.target import PATIENCE_S, Missing

NODES: Final = 10
MOST_IDLE_PERCENT: Final = 5.0
_STEP_S: Final = 0.1
_PER_S: Final = 2
"""Mini-batches that a node of one worker runs."""
_ENTRY: Final = """
import os, random, time
def run(mini_batch):
    time.sleep(random.uniform(0.4, 0.6))
    return [os.path.basename(path) for path in mini_batch]
"""


@dataclass
class Watched(threading.Thread):
    """Adds up, while jobs run, for how long nodes are there."""

    there: Provisioned
    node_s: float = 0.0
    most: int = 0
    """Nodes at the same time."""
    is_over: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        super().__init__(daemon=True)

    def __hash__(self) -> int:
        return id(self)

    def run(self) -> None:
        nodes, before = NodeRegistry(self.there.cluster.redis), time.monotonic()
        while not self.is_over.wait(_STEP_S):
            now = time.monotonic()
            alive = [info for info, is_alive in nodes.all() if is_alive and info.compute == self.there.pool]
            self.node_s += len(alive) * (now - before)
            self.most = max(self.most, len(alive))
            before = now


def three_jobs(there: Provisioned, seconds: float) -> tuple[float, float, list[str]]:
    """Run three jobs of about this many seconds each.

    Returns:
        The seconds for which nodes were there, those in which they ran mini-batches, and what is wrong.
    """
    wrong: list[str] = []
    run_s = 0.0
    watched = Watched(there)
    watched.start()
    for number in (1, 2, 3):
        watched.most = 0
        run_s += _one_job(there, round(seconds * NODES * _PER_S), number, wrong)
        if watched.most != NODES:
            wrong.append(f"job {number} had {watched.most} nodes")
        if number == 1:
            there.cluster.until(lambda: len(there.ours()) < NODES, "the first nodes have gone", PATIENCE_S)
        else:
            there.cluster.until(lambda: not there.ours(), "all nodes have gone", PATIENCE_S)
    watched.is_over.set()
    watched.join()
    return watched.node_s, run_s, wrong


def _one_job(there: Provisioned, count: int, number: int, wrong: list[str]) -> float:
    spec = {
        "entry_script": "entry.py", "inputs": str(there.cluster.files(count)), "mini_batch_size": 1,
        "compute": there.pool, "instance_count": NODES,
    }  # fmt: skip
    job = there.user.submit(spec, zip_of({"entry.py": _ENTRY}))
    result = there.cluster.result(job, timeout_s=PATIENCE_S)
    outcomes = list(read_decisions(there.cluster.folder(job).path))
    tries = {outcome.tries for outcome in outcomes}
    if result.state is not JobState.COMPLETED or tries != {1} or result.progress.lost:
        wrong.append(f"job {number}: {result.state}, tries {tries}, {result.progress.lost} lost")
    return sum(outcome.run_s for outcome in outcomes)


def main(arguments: list[str]) -> int:
    """Run the jobs, and print; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.engines.scaling")
    parser.add_argument("engine", choices=targets.names())
    parser.add_argument("--seconds", type=float, default=90, help="of work of each job")
    given = parser.parse_args(arguments)
    try:
        with targets.reach(given.engine) as target, Provisioned(target, most=NODES, idle_s=1) as there:
            node_s, run_s, wrong = three_jobs(there, given.seconds)
    except Missing as missing:
        print(f"engine {given.engine} can't be had here: {missing}", file=sys.stderr)
        return 2
    percent = 100 * (1 - run_s / node_s)
    print(*wrong, sep="\n", end="\n" if wrong else "")
    print(f"scaling {given.engine} jobs=3 nodes={NODES} node_s={node_s:.0f} idle_percent={percent:.1f}")
    return int(bool(wrong) or percent > MOST_IDLE_PERCENT)


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, _interrupt)  # nodes don't end with those who asked for them
    sys.exit(main(sys.argv[1:]))
