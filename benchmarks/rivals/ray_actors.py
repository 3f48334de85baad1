"""Ray's core: two actors that get all calls at once, in turn; results are fetched by the hundred."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path
from typing import Any

import ray

from benchmarks.rivals.ray_session import session
from benchmarks.rivals.work import WORKERS, Run, Work

_STORE_BYTES = 512 << 20
_WAIT_FOR = 1000
"""Of how many at once; asking for all that is left would look at each of them each time."""
_FETCH = 100


class Actor:
    """One worker."""

    def __init__(self, work: Work) -> None:
        self._work = work

    def run(self, paths: list[str]) -> list[str]:
        """One call."""
        return self._work(paths)


def _run(actors: list[Any], mini_batches: list[list[str]]) -> Iterable[list[str]]:
    left = [actor.run.remote(paths) for actor, paths in zip(cycle(actors), mini_batches, strict=False)]
    while left:
        looked_at, rest = left[:_WAIT_FOR], left[_WAIT_FOR:]
        done, waiting = ray.wait(looked_at, num_returns=min(_FETCH, len(looked_at)))
        left = waiting + rest
        yield from ray.get(done)


@contextmanager
def ready(work: Work, scratch: Path, redis_server: str) -> Iterator[Run]:
    """Two actors that have answered."""
    with session(_STORE_BYTES):
        remote = ray.remote(num_cpus=1)(Actor)
        actors = [remote.remote(work) for _ in range(WORKERS)]
        ray.get([actor.run.remote([]) for actor in actors])
        yield lambda mini_batches: _run(actors, mini_batches)
