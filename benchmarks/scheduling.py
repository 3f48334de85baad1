"""How fast a leader cuts, encodes, records and publishes: mini-batches of 100 files, everything durable, nothing run.

From a synthetic listing, which shows the leader's own cost, and from a real folder. The real scheduler and publisher
take turns as in a leader, with a real Redis; what they publish is removed as if it had been decided.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from unittest.mock import patch

from benchmarks import Size, data
from benchmarks.measure import Comparison, Figures, cpu_seconds
from benchmarks.stage import Stage
from parallelrun_core.folder.decided import Decided
from parallelrun_core.storage.interface import Page
from parallelrun_core.storage.local import LocalStorage
from parallelrun_core.storage.local.listing import LocalListing
from parallelrun_core.store.keys import JobKeys
from parallelrun_master.publishing.publisher import Publisher
from parallelrun_master.publishing.scheduling import Scheduler

_FILES_EACH = 100
_SLICE_S = 0.005
_LOOK_AT = 10_000


_NAMES = [b"img_%07d.jpg" % number for number in range(1000)]


class Synthetic(LocalListing):
    """Folders of a thousand files that don't exist; the path ends with the number of all files. It costs nothing."""

    def __iter__(self) -> Iterator[Page]:
        self.is_sorted = False
        for number in range(int(os.path.basename(self.path)) // len(_NAMES)):
            yield b"%s/part-%05d" % (os.fsencode(self.path), number), _NAMES


def schedule(stage: Stage, path: str, listing: type[LocalListing]) -> Figures:
    """One job's scheduling from its beginning to its end."""
    folder, spec = stage.job(inputs=path, mini_batch_size=_FILES_EACH)
    queue, keys = stage.lead(folder), JobKeys(folder.job_id)
    processes = [os.getpid(), stage.redis_pid]
    with patch.object(LocalStorage, "files", lambda _, path, below=(), rule=None: listing(path, below, rule)):
        cpu, began = cpu_seconds(processes), time.perf_counter()
        scheduler = Scheduler(folder.path, spec, queue.term)
        publisher = Publisher(folder.path, queue, Decided(), scheduler.handover)
        listed_s, more = 0.0, True
        while publisher.window.next_id < scheduler.mini_batches or more:
            more = more and scheduler.step(_SLICE_S)
            listed_s = listed_s or (0.0 if more else time.perf_counter() - began)
            publisher.step(scheduler.mini_batches)
            if publisher.window.outstanding > _LOOK_AT:
                stage.redis.delete(keys.ready, keys.messages)
                publisher.window.decided(publisher.window.outstanding)
        wall = time.perf_counter() - began
    count = scheduler.mini_batches
    stage.redis.delete(keys.ready, keys.messages)
    used = cpu_seconds(processes) - cpu
    return {"per_s": count / wall, "cpu_us": used / count * 1e6, "listed_s": listed_s, "scandir_s": _scandir_s(path)}


def _scandir_s(path: str) -> float:
    if not os.path.isdir(path):
        return 0.0
    began = time.perf_counter()
    with os.scandir(path) as entries:
        for entry in entries:
            entry.is_dir()
    return time.perf_counter() - began


def main(size: Size) -> dict[str, object]:
    """Measure; returns what the last line says."""
    rounds, files = {"tiny": (1, 2_000), "quick": (3, 200_000), "full": (7, 1_000_000)}[size]
    real = str(data.files(files))
    with Stage() as stage:
        found = Comparison(
            {
                "synthetic listing": lambda: schedule(stage, f"/nowhere/{files}", Synthetic),
                "real folder": lambda: schedule(stage, real, LocalListing),
            }
        ).run(rounds)
    print(found.table())
    return {
        "files": files,
        "rounds": rounds,
        **found.spread("synthetic listing", "per_s").fields("synthetic_per_s", 0),
        **found.spread("real folder", "per_s").fields("real_per_s", 0),
        "synthetic_cpu_us": f"{found.spread('synthetic listing', 'cpu_us').median:.1f}",
        "real_cpu_us": f"{found.spread('real folder', 'cpu_us').median:.1f}",
    }
