"""Large tables in the store against the same tables on the disk, in mini-batches of 10 MB, with 2 workers.

The disk takes no CPU from a job, so the store has one of its own, and the job has all others, in both places. A second
ratio, `…_sharing_cpus`, is of what happens where it hasn't. Round by round in turn: a new cluster with an empty cache
on its node reads the table from the store, and then from the disk. The time is that of a whole job, from its submission
to its output, after a first one that has loaded all libraries. The store keeps the table as it is: compressed, as this
one keeps text by itself, it would take more CPU to unpack than the job takes in all. `read_to_size` is what came to the
node, in bytes of the table: the master's own reads are not in it. `python -m benchmarks.store.tables CSV_BYTES
PARQUET_BYTES` chooses the sizes; those of Parquet are of the text that it is made of.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Final

from benchmarks import Size
from benchmarks.jobs import Jobs
from benchmarks.measure import Comparison, Figures
from benchmarks.store import server
from benchmarks.table import table
from tests.object_servers import BUCKET

_SCRIPT: Final = "def run(mini_batch):\n    return [str(len(mini_batch))]\n"
_STEPS: Final = {"plain.csv": "read_delimited", "rows.parquet": "read_parquet"}
_SIZES: Final[dict[Size, tuple[int, int]]] = {
    "tiny": (1 << 20, 1 << 20),
    "quick": (256 << 20, 256 << 20),
    "full": (2 << 30, 2 << 30),
}


_ROUNDS_SHARING: Final = 3


class Rounds:
    """A new cluster with an empty cache for each round; its two jobs are called in turn."""

    def __init__(self, folder: Path, kind: str) -> None:
        self._folder, self._kind = folder, kind
        self._size = (folder / kind).stat().st_size
        self._jobs: Jobs | None = None

    def in_store(self) -> Figures:
        """Nothing is on the node."""
        self.close()
        self._jobs = Jobs(_SCRIPT)
        cache = self._jobs.home / "cache"
        with server.environment({"XDG_CACHE_HOME": str(cache)}):
            self._jobs.__enter__()
        self._run(f"s3://{BUCKET}/warm/{self._kind}")
        before = _bytes_in(cache)
        figures = self._run(f"s3://{BUCKET}/{self._kind}")
        return {**figures, "read_to_size": (_bytes_in(cache) - before) / self._size}

    def on_disk(self) -> Figures:
        """The same file on the disk."""
        return self._run(str(self._folder))

    def close(self) -> None:
        """End the last round."""
        if self._jobs is not None:
            self._jobs.__exit__()
            self._jobs = None

    def _run(self, path: str) -> Figures:
        assert self._jobs is not None  # noqa: S101 - a round begins with `in_store`
        inputs: dict[str, Any] = {"data": {"path": path, "transformations": [_STEPS[self._kind]]}}
        done = self._jobs.run(Path(path), inputs=inputs, mini_batch_size="10mb", run_invocation_timeout=600)
        return {"mb_per_s": self._size / 1e6 / done.wall_s, "cpu_s": done.cpu_s, **done.cpu_by}


def _bytes_in(cache: Path) -> int:
    return sum(path.stat().st_size for path in cache.rglob("objects/*/*"))


def measure(kind: str, size_bytes: int, rounds: int, *, is_apart: bool) -> Comparison:
    """Compare both places of one table, with the store on a CPU of its own or not."""
    folder = table(kind, size_bytes)
    with server.store() as store:
        store.put_as_it_is(table(kind, 1 << 20) / kind, f"warm/{kind}/{kind}")
        store.put_as_it_is(folder / kind, f"{kind}/{kind}")
        ours = Rounds(folder, kind)
        systems: dict[str, Callable[[], Figures]] = {"store": server.with_its_cpu(ours.in_store), "disk": ours.on_disk}
        with server.apart() if is_apart else nullcontext():
            try:
                return Comparison(systems).run(rounds)
            finally:
                ours.close()


def main(size: Size, sizes: tuple[int, int] | None = None) -> dict[str, object]:
    """Measure; returns what the last line says."""
    names = {"plain.csv": "csv_to_local", "rows.parquet": "parquet_to_local"}
    if not server.available():
        return dict.fromkeys(names.values(), "not_measured")
    rounds = {"tiny": 1, "quick": 3, "full": 5}[size]
    last: dict[str, object] = {}
    for (kind, name), size_bytes in zip(names.items(), sizes or _SIZES[size], strict=True):
        print(f"  {kind}: {size_bytes / 1e6:,.0f} MB of text", flush=True)
        if server.has_cpus_for_both():
            compared = measure(kind, size_bytes, rounds, is_apart=True)
            print(compared.table())
            last |= compared.ratio("store", "disk", "mb_per_s").fields(name)
            last[name.replace("to_local", "read")] = f"{compared.spread('store', 'read_to_size').median:.3f}"
        print("  sharing the CPUs", flush=True)
        sharing = measure(kind, size_bytes, min(rounds, _ROUNDS_SHARING), is_apart=False)
        print(sharing.table())
        last |= sharing.ratio("store", "disk", "mb_per_s").fields(f"{name}_sharing_cpus")
    return last


if __name__ == "__main__":
    given = tuple(map(int, sys.argv[1:3]))
    print(main("quick", (given[0], given[1]) if given else None))
