"""Half of the nodes are killed at random every few seconds, and the provisioner and Redis as well."""

from __future__ import annotations

import json
import random
import time
from dataclasses import dataclass

from parallelrun_core.folder.decisions import read_decisions
from parallelrun_core.wire.states import JobState
from tests.acceptance.http_user import zip_of
from tests.chaos.oracle import Finding, examine
from tests.engines.nodes import PROVISIONER, Provisioned
from tests.engines.target import PATIENCE_S

NODES = 4
_EVERY_S = 4.0
_ITEMS = 2
_PER_S = 8
"""Mini-batches that a node of one worker runs."""
_AFTER_S = 20
"""How much work is left for when the faults have ended, to see that all nodes come back for it."""
_SLOW = """
import os, random, time, zlib
def run(mini_batch):
    time.sleep(random.uniform(0.05, 0.15))
    names = [os.path.basename(path) for path in mini_batch]
    return [f"{name} {zlib.crc32(name.encode())}" for name in names]
"""
"""The rows are those of the oracle's own script."""


@dataclass(frozen=True)
class Report:
    """What was done to a job, and what has become of it."""

    finding: Finding
    kills: int
    provisioner_kills: int
    redis_restarts: int
    charged: int
    """Mini-batches with a try that was charged for a node's death."""
    is_full_again: bool
    """Whether there were as many nodes as wanted again before the job's end, without anybody's help."""


def kills(there: Provisioned, *, seed: int, seconds: float) -> Report:
    """Run a job with faults for about that time, and then to its end."""
    chance = random.Random(seed)
    count = round((seconds + _AFTER_S) * NODES * _PER_S)
    spec = {
        "entry_script": "entry.py", "inputs": str(there.cluster.files(count * _ITEMS)), "mini_batch_size": _ITEMS,
        "compute": there.pool, "instance_count": NODES, "lost_leases": 1000,
    }  # fmt: skip
    job = there.user.submit(spec, zip_of({"entry.py": _SLOW}))
    counts = dict.fromkeys(("nodes", "provisioner", "redis"), 0)
    there.cluster.until(lambda: len(there.ours()) == NODES, "all nodes are there", PATIENCE_S)
    until = time.monotonic() + seconds
    while time.monotonic() < until and there.cluster.folder(job).result() is None:
        time.sleep(_EVERY_S * chance.uniform(0.5, 1.5))  # the faults of this world come without a sign
        at_work = there.at_work()
        for launch_id in chance.sample(at_work, len(at_work) // 2):
            there.target.kill(launch_id)
            counts["nodes"] += 1
        what = chance.choice(("nothing", "provisioner", "redis"))
        if what == "provisioner":
            there.cluster.kill(PROVISIONER)
            there.cluster.start(PROVISIONER)
        elif what == "redis":
            there.cluster.redis_server.kill()
            there.cluster.redis_server.start()
        if what in counts:
            counts[what] += 1
    is_full_again = _is_full(there, job)
    result = there.cluster.result(job, timeout_s=max(120, seconds * 4))
    assert result.state is JobState.COMPLETED, json.dumps(str(result.failure))
    folder = there.cluster.folder(job)
    tries = [outcome.tries for outcome in read_decisions(folder.path)]
    return Report(
        finding=examine(folder, result),
        kills=counts["nodes"],
        provisioner_kills=counts["provisioner"],
        redis_restarts=counts["redis"],
        charged=sum(number != 1 for number in tries) + result.progress.retried,
        is_full_again=is_full_again,
    )


def _is_full(there: Provisioned, job: str) -> bool:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and there.cluster.folder(job).result() is None:
        if len(there.ours()) == NODES:
            return True
        time.sleep(0.1)  # an engine gives no sign
    return False
