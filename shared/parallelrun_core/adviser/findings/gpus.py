"""GPUs that mostly wait, with room for more workers on each.

PyTorch's profiler calls a utilization below 50 % low. Memory is to stay below 90 %.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from parallelrun_core.adviser.advice import AdviceFinding, Change
from parallelrun_core.adviser.findings.case import Case, Guide
from parallelrun_core.figures import counted, percent

_LOW: Final = 0.50
_FULL: Final = 0.90
_MOST: Final = 8


def findings_of(case: Case) -> Iterator[AdviceFinding]:
    """Another `workers_per_gpu`."""
    schedule, now = case.schedule, case.settings.workers_per_gpu
    shares = [use.gpu_share for use in case.evidence.uses.values() if use.gpu_share is not None]
    memory = max((use.gpu_memory_share or 0.0 for use in case.evidence.uses.values()), default=0.0)
    if not shares or max(shares) >= _LOW or not memory or not now:
        return
    used = max(shares)
    times = int(min(_FULL / memory, _FULL / max(used, 0.01), _MOST / now))
    if times < 2:
        return
    yield from case.faster(
        "gpu_idle",
        schedule.seconds(ready=schedule.lanes_of(processes=schedule.processes_per_node * times)),
        guide=Guide.WORKERS,
        title=f"The GPUs mostly wait: they compute for {percent(used)} of the time, and {percent(memory)} of their "
        "memory is used.",
        evidence=[
            f"{counted(now, 'worker')} on each GPU",
            f"{schedule.processes_per_node:,} on each of {counted(schedule.nodes, 'node')}",
        ],
        change=Change(
            text=f"Run {counted(now * times, 'worker')} on each GPU, as far as CPUs and memory of a node suffice.",
            set={
                "workers_per_gpu": str(now * times),
                **(
                    {"max_concurrency_per_instance": str(case.settings.processes * times)}
                    if case.settings.processes
                    else {}
                ),
            },
        ),
    )
