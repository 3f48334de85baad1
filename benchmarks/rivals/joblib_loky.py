"""joblib with its loky processes: one mini-batch in each task, results as they come."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from joblib import Parallel, delayed
from joblib.externals.loky import get_reusable_executor

from benchmarks.rivals.work import WORKERS, Run, Work


@contextmanager
def ready(work: Work, scratch: Path, redis_server: str) -> Iterator[Run]:
    """Two processes that wait."""

    def run(mini_batches: list[list[str]]) -> Iterable[list[str]]:
        tasks = (delayed(work)(paths) for paths in mini_batches)
        parallel = Parallel(n_jobs=WORKERS, backend="loky", batch_size=1, return_as="generator_unordered")
        results: Iterable[list[str]] = parallel(tasks)
        return results

    nothing: list[str] = []
    list(run([nothing] * 4 * WORKERS))
    try:
        yield run
    finally:
        get_reusable_executor().shutdown(wait=True, kill_workers=True)
