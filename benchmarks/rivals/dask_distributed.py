"""Dask: a cluster of this machine alone, two processes of one thread each, and a future for each mini-batch."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

# Only the rivals' environment has it.
from distributed import Client, LocalCluster, as_completed  # type: ignore[import-not-found]

from benchmarks.rivals.work import WORKERS, Run, Work


@contextmanager
def ready(work: Work, scratch: Path, redis_server: str) -> Iterator[Run]:
    """Two processes that have answered."""
    with (
        LocalCluster(
            n_workers=WORKERS,
            threads_per_worker=1,
            dashboard_address=None,
            local_directory=str(scratch),
            silence_logs=logging.ERROR,
        ) as cluster,
        Client(cluster) as client,
    ):

        def run(mini_batches: list[list[str]]) -> Iterable[list[str]]:
            # Pure calls with equal arguments would be made once.
            futures = client.map(work, mini_batches, pure=False)
            for _, rows in as_completed(futures, with_results=True):
                yield rows

        nothing: list[str] = []
        list(run([nothing] * WORKERS))
        yield run
