"""Jobs as they might have gone, for what is said about them."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapify, heapreplace
from typing import Any

from parallelrun_core.adviser.advice import Advice, Thresholds
from parallelrun_core.adviser.advising import advise
from parallelrun_core.adviser.evidence import Evidence, Init, MeasuredSettings, columns

FIXED_S = 0.005


def went(
    work: Sequence[float],
    *,
    nodes: int = 1,
    processes: int = 4,
    init_s: float = 1.0,
    after_s: float = 0.5,
    items: int | Sequence[int] = 10,
    settings: MeasuredSettings | None = None,
    slow: dict[int, float] | None = None,
    columns_too: dict[str, Sequence[float]] | None = None,
    **fields: Any,
) -> Evidence:
    """A job whose mini-batches took so long each, taken in turn by whichever worker was free."""
    lanes = [(node, f"process{each:03d}") for node in range(nodes) for each in range(processes)]
    free = [(init_s, lane) for lane in range(len(lanes))]
    heapify(free)
    tries: dict[str, list[float]] = {"node": [], "process": [], "started_s": [], "elapsed_s": []}
    for seconds in work:
        at, lane = free[0]
        took = seconds * (slow or {}).get(lanes[lane][0], 1.0)
        heapreplace(free, (at + took + FIXED_S, lane))
        for name, value in zip(tries, (lanes[lane][0], lane, at, took), strict=True):
            tries[name].append(value)
    ends = [at + took for at, took in zip(tries["started_s"], tries["elapsed_s"], strict=True)]
    counts = [items] * len(work) if isinstance(items, int) else items
    given = {"run_s": tries["elapsed_s"], "cpu_s": tries["elapsed_s"], **(columns_too or {})}
    return Evidence(
        job_id="job_01kav3x8n2h7q5m9c4t6",
        tries=columns(mini_batch=range(len(work)), items=counts, **tries, **given),
        nodes=[f"node{node:03d}" for node in range(nodes)],
        processes=[f"node{node:03d}/{process}" for node, process in lanes],
        seconds=max(ends) + after_s,
        inits=[Init(f"node{node:03d}", process, 0.0, init_s) for node, process in lanes],
        settings=settings or MeasuredSettings(),
        **fields,
    )


def ids(evidence: Evidence, *, least_s: float = 60.0) -> list[str]:
    """What is said about a job, by the ids of the findings."""
    return [finding.id for finding in advice(evidence, least_s=least_s).findings]


def advice(evidence: Evidence, *, least_s: float = 60.0) -> Advice:
    """What is said about a job."""
    return advise(evidence, Thresholds(seconds=least_s))
