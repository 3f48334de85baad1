"""Ray Data: `map_batches` with an actor class, two actors, its own choice of blocks."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import ray.data

from benchmarks.rivals.ray_session import session
from benchmarks.rivals.work import WORKERS, Run, Work

_STORE_BYTES = 2 << 30


class Actor:
    """What a worker keeps between batches."""

    def __init__(self, work: Work) -> None:
        self._work = work

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        return {"item": np.array(self._work(list(batch["item"])), dtype=object)}


def _run(work: Work, mini_batches: list[list[str]]) -> Iterable[list[str]]:
    each = max(map(len, mini_batches))
    paths = ray.data.from_items([path for paths in mini_batches for path in paths])
    # Half a CPU each: with a whole one there would be none left for the tasks that make the blocks.
    done = paths.map_batches(Actor, fn_constructor_args=(work,), batch_size=each, concurrency=WORKERS, num_cpus=0.5)
    rows = []
    for row in done.iter_rows():
        rows.append(row["item"])
        if len(rows) == each:
            yield rows
            rows = []
    if rows:
        yield rows


@contextmanager
def ready(work: Work, scratch: Path, redis_server: str) -> Iterator[Run]:
    """A cluster that has run something; the actors themselves are started with each dataset."""
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    with session(_STORE_BYTES):
        ray.data.DataContext.get_current().enable_progress_bars = False
        list(_run(list, [["warm"]] * WORKERS))
        yield lambda mini_batches: _run(work, mini_batches)
