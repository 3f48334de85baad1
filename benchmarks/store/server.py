"""The store, and what is in it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from benchmarks import data
from benchmarks.measure import Figures, cpu_seconds
from tests.object_servers import BUCKET, ObjectServer, SeaweedFS
from tests.object_servers.server import PROGRAMS

_THREADS: Final = 16
_OPEN: Final[list[SeaweedFS]] = []


def available() -> bool:
    """Whether the store can be started here; if not, prints how to install it."""
    if (PROGRAMS / "ready").exists():
        return True
    print("  not measured: `make test T=tests/integration/storage` installs the store", flush=True)
    return False


@contextmanager
def environment(values: dict[str, str]) -> Iterator[None]:
    """Within this context, this process and what it starts have these variables."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextmanager
def store() -> Iterator[SeaweedFS]:
    """A store that everything which is started within this context finds; the one of the context around it, if any."""
    if _OPEN:
        yield _OPEN[0]
        return
    with empty_store() as server:
        _OPEN.append(server)
        try:
            yield server
        finally:
            _OPEN.clear()


@contextmanager
def empty_store() -> Iterator[SeaweedFS]:
    """One of its own, even within the context of another."""
    with SeaweedFS() as server, environment({**server.environment, **empty_cache(server)}):
        yield server


def with_its_cpu(measure: Callable[[], Figures]) -> Callable[[], Figures]:
    """The same, and the CPU that the store has used meanwhile: it has no other than what is measured."""

    def measure_both() -> Figures:
        pids = [_OPEN[0].pid]
        before = cpu_seconds(pids)
        figures = measure()
        return {**figures, "store_cpu_s": cpu_seconds(pids) - before}

    return measure_both


def has_cpus_for_both() -> bool:
    """Whether the store can have one for itself."""
    return len(os.sched_getaffinity(0)) > 1


@contextmanager
def apart() -> Iterator[None]:
    """Within this context, the open store has one CPU for itself, and this process and what it starts the others."""
    cpus = os.sched_getaffinity(0)
    first = min(cpus)
    _let_run_on({first}, _OPEN[0].pid)
    os.sched_setaffinity(0, cpus - {first})
    try:
        yield
    finally:
        os.sched_setaffinity(0, cpus)
        _let_run_on(cpus, _OPEN[0].pid)


def _let_run_on(cpus: set[int], pid: int) -> None:
    for thread in Path(f"/proc/{pid}/task").iterdir():  # new ones are as the one that starts them
        os.sched_setaffinity(int(thread.name), cpus)


def empty_cache(server: ObjectServer) -> dict[str, str]:
    """What nodes have to find in their environment, so that they know no objects of earlier stores."""
    return {"XDG_CACHE_HOME": str(server.home / "cache")}


def upload(folder: Path, prefix: str) -> str:
    """Put the files of a folder into the store; returns the URL of their prefix."""
    import obstore
    from obstore.store import S3Store

    bucket = S3Store(BUCKET, client_options={"allow_http": True})

    def put(path: Path) -> None:
        obstore.put(bucket, f"{prefix}/{path.name}", path.read_bytes(), use_multipart=False)

    with ThreadPoolExecutor(_THREADS) as pool:
        for _ in pool.map(put, folder.iterdir()):
            pass
    return f"s3://{BUCKET}/{prefix}"


def same_files(count: int, size_bytes: int) -> Path:
    """A folder of so many different files, created once for all runs."""
    return data.files(count, size_bytes)
