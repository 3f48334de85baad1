"""Evidence about a job: the tries of its mini-batches, its workers, its nodes.

Times are seconds; those at which something happened count from the job's start.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

DONE: Final = 0
FAILED: Final = 1
RETRY: Final = 2
"""How a try has ended; after the last one, another followed."""


@dataclass(frozen=True, kw_only=True)
class Tries:
    """All tries of a job, a column for each of what was measured, in the order in which they were handed over."""

    mini_batch: Ints
    status: Ints
    node: Ints
    """An index of `Evidence.nodes`; so is `process` one of `Evidence.processes`."""
    process: Ints
    items: Ints
    started_s: Floats
    """Time when the agent handed it to its worker, which may still have been busy."""
    elapsed_s: Floats
    run_s: Floats
    load_s: Floats
    cpu_s: Floats
    peak_bytes: Floats
    """0: unknown."""
    read_bytes: Floats
    """-1: unknown."""
    category: Ints
    """An index of `Evidence.categories`: 0, which is no error, if it hasn't failed."""

    def __len__(self) -> int:
        return len(self.mini_batch)

    def where(self, mask: NDArray[np.bool_] | Ints) -> Tries:
        """Some of them, in this order if these are indices."""
        return Tries(**{name: column[mask] for name, column in vars(self).items()})


@dataclass(frozen=True)
class Sample:
    """The part of a job's tries that is looked at."""

    each: float = 1.0
    """Number of each one stands for."""
    each_retry: float = 1.0
    """Number of a try that was followed by another one stands for, of those of its mini-batch."""
    stretches: int = 1
    """Number of pieces of the sample; between two of them are tries that nobody has looked at."""

    @property
    def is_all(self) -> bool:
        return self.stretches == 1

    def count(self, looked_at: int) -> str:
        """Return how many there are, in words, if so many were looked at."""
        return f"{looked_at:,}" if self.is_all else f"about {float(f'{looked_at * self.each:.2g}'):,.0f}"


@dataclass(frozen=True)
class Init:
    """A worker's `init()` that has ended."""

    node: str
    process: str
    started_s: float
    seconds: float
    is_done: bool = True


@dataclass(frozen=True, kw_only=True)
class NodeUse:
    """Measurements of a node while it worked for the job; None: not measured."""

    cpus: float | None = None
    """Number of CPUs its workers may use: of a quota, perhaps a fraction."""
    cpu_share: float | None = None
    """Mean share of all its CPUs that was busy, by whomever; 1: all of them."""
    throttled: float | None = None
    """Seconds for which a quota (cgroup) stopped threads that could run, all added up, in each second."""
    memory_bytes: float | None = None
    memory_left_bytes: float | None = None
    """The least that was available."""
    cpu_pressure: float | None = None
    """Share of the time in which some process waited for a CPU (PSI); so are the others for memory and disks."""
    memory_pressure: float | None = None
    io_pressure: float | None = None
    threads: float | None = None
    """Mean number of threads of a worker."""
    gpu_share: float | None = None
    gpu_memory_share: float | None = None


@dataclass(frozen=True, kw_only=True)
class MeasuredSettings:
    """The job's settings that findings are about."""

    size: int = 10
    """Size of a mini-batch, in `unit`s."""
    unit: str = "files"
    """`files`; `bytes` or `rows` of a table; empty, if nobody gives a size: by keys, without data, or `auto`."""
    is_auto: bool = False
    """The job chooses the size of its mini-batches, which differs."""
    has_keys: bool = False
    fails_whole: bool = False
    """A mini-batch that fails loses all of its items (`on_failure: mini_batch`)."""
    run_invocation_timeout_s: float = 60.0
    processes: int | None = None
    """On each node (`max_concurrency_per_instance`)."""
    workers_per_gpu: int = 1
    """0: each worker has several."""
    has_several_in_flight: bool = False
    """A worker runs several mini-batches at once: how many workers would do the same is not known, then."""


@dataclass(frozen=True, kw_only=True)
class Evidence:
    job_id: str = ""
    tries: Tries
    sample: Sample = Sample()
    nodes: Sequence[str]
    processes: Sequence[str]
    """`<node>/<process>`, as in the reports."""
    categories: Sequence[str] = ("",)
    seconds: float
    """Seconds from the job's start to its end; of one that runs, to the end of its last try."""
    after_s: float | None = None
    """Seconds from the end of the last try to the job's end; None: as the times say."""
    is_running: bool = False
    inits: Sequence[Init] = ()
    first_listed_s: float | None = None
    """Time when the first mini-batch was there."""
    environment_s: float = 0.0
    """Seconds that the workers' Python was built before the first of them started, at most."""
    uses: dict[str, NodeUse] = field(default_factory=dict)
    """By node."""
    waits_s: dict[str, float] = field(default_factory=dict)
    """Seconds for which tries have waited for permits of limits, by limit."""
    waits_of_s: float = 0.0
    """Seconds that those tries took which have asked for permits."""
    spent_usd: float = 0.0
    """US dollars that its scripts have reported as cost, since it was submitted."""
    budget_usd: float = 0.0
    """US dollars that it may spend; 0: it has no budget."""
    settings: MeasuredSettings = field(default_factory=MeasuredSettings)


def columns(**values: Any) -> Tries:
    """Tries of plain sequences, in any order; what is left out is unknown, or 0."""
    count = len(values["mini_batch"])
    defaults = {"peak_bytes": 0.0, "read_bytes": -1.0, "items": 1}
    whole = {"mini_batch", "status", "node", "process", "items", "category"}
    arrays: dict[str, Any] = {}
    for name in Tries.__dataclass_fields__:
        column = values.get(name)
        kind = np.int64 if name in whole else np.float64
        arrays[name] = (
            np.asarray(column, dtype=kind) if column is not None else np.full(count, defaults.get(name, 0), kind)
        )
    tries = Tries(**arrays)
    order = np.lexsort((tries.mini_batch, tries.started_s))
    return tries.where(order)


def groups_of(column: Ints) -> Iterator[tuple[int, Ints]]:
    """Each value of a column, ascending, and where it is."""
    order = np.argsort(column, kind="stable")
    for mine in np.split(order, np.flatnonzero(np.diff(column[order])) + 1) if len(order) else ():
        yield int(column[mine[0]]), mine
