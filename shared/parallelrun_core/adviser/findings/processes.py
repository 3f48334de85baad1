"""Too few processes on each node, or more than its CPUs can run.

The tuning guide of the reference advises one process for each CPU, and CPU seconds of less than 70 % of the elapsed
ones. Workers that mostly wait leave CPUs unused that more of them would use.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from parallelrun_core.adviser.advice import AdviceFinding, Change
from parallelrun_core.adviser.evidence import DONE
from parallelrun_core.adviser.findings.case import Case, Guide
from parallelrun_core.adviser.findings.contention import cpu_per_worker, slowdown
from parallelrun_core.figures import counted, duration, part_of_a_cpu, percent

_BUSY: Final = 0.70
_MEMORY: Final = 0.80
_PER_CPU: Final = 4
"""Of workers that only wait, more are seldom worth their memory; `--what-if` says what they would give."""
_MOST_SHOWN: Final = 3
_NEAR_BEST: Final = 0.05
_OVER: Final = 1.15


def most_processes(case: Case) -> int:
    """Return how many the CPUs and the memory of the least of the nodes let run side by side."""
    schedule, now = case.schedule, case.schedule.processes_per_node
    uses = list(case.evidence.uses.values())
    cpus = min((use.cpus for use in uses if use.cpus), default=float(now))
    most = min(_BUSY * cpus / max(1e-3, cpu_per_worker(schedule)), _PER_CPU * cpus)
    peak = float(case.evidence.tries.peak_bytes.max())
    memory = min((use.memory_bytes for use in uses if use.memory_bytes), default=0.0)
    if peak and memory:
        most = min(most, _MEMORY * memory / peak)
    return int(most)


def findings_of(case: Case) -> Iterator[AdviceFinding]:
    """Another `max_concurrency_per_instance`."""
    yield from _too_few(case)
    yield from _oversubscribed(case)


def _too_few(case: Case) -> Iterator[AdviceFinding]:
    schedule, now = case.schedule, case.schedule.processes_per_node
    if slowdown(schedule) > 1.0 or any(use.gpu_share is not None for use in case.evidence.uses.values()):
        return  # what they wait for has no time for more of them, or it is a GPU, of which each has a part
    options = {
        count: schedule.seconds(ready=schedule.lanes_of(processes=count))
        for count in sorted({now + 1, *(int(now * times) for times in (1.5, 2, 3, 4, 6, 8))})
        if now < count <= most_processes(case)
    }
    if not options:
        return
    best = min(options.values())
    count = min(each for each, took in options.items() if took <= best * (1 + _NEAR_BEST))
    share = cpu_per_worker(schedule)
    yield from case.faster(
        "too_few_processes",
        options[count],
        guide=Guide.WORKERS,
        title=f"Workers mostly wait: each uses {part_of_a_cpu(share)}, so more of them fit on each node.",
        evidence=[
            f"{counted(now, 'process')} on each of {counted(schedule.nodes, 'node')}, with {part_of_a_cpu(share)} each",
            f"half of the mini-batches took longer than {duration(float(np.median(schedule.work)))}",
            *(
                f"all CPUs of {name} were busy for {percent(use.cpu_share)} of the time, by whomever"
                for name, use in list(case.evidence.uses.items())[:_MOST_SHOWN]
                if use.cpu_share is not None
            ),
        ],
        change=Change(
            text=f"Run {counted(count, 'process')} on each node; it needs as many slots (`--slots` of its agent). This "
            f"holds "
            "as far as what they wait for, such as storage or a service, can take more at once.",
            set={"max_concurrency_per_instance": str(count)},
        ),
    )


def _oversubscribed(case: Case) -> Iterator[AdviceFinding]:
    """More threads than CPUs: by threads of libraries, which start one for each CPU of the machine in each process."""
    schedule, tries = case.schedule, case.evidence.tries
    cpus = min((use.cpus for use in case.evidence.uses.values() if use.cpus), default=0.0)
    done = tries.status == DONE
    if not cpus or not done.any():
        return
    now = schedule.processes_per_node
    cores = float(np.median(tries.cpu_s[done] / np.maximum(tries.run_s[done], 1e-9)))
    pressure = max((use.cpu_pressure or 0.0 for use in case.evidence.uses.values()), default=0.0)
    threads = max((use.threads or 0.0 for use in case.evidence.uses.values()), default=0.0)
    if threads * now <= _OVER * cpus or cores * now < _BUSY * cpus or pressure < _WAITING or threads < 2:
        return
    each = max(1, int(cpus // now))
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    # While some thread waits for a CPU, those that wait for it at a barrier spin: that share of the time is lost.
    lost = 1 - cpus / (threads * now)
    predicted = schedule.seconds(schedule.work * (1 - lost * pressure) + schedule.lost + schedule.fixed_s)
    yield from case.faster(
        "oversubscribed",
        predicted,
        guide=Guide.WORKERS,
        title=f"{counted(now, 'process')} with {threads:.0f} threads each share {cpus:g} CPUs: they hinder each other.",
        evidence=[
            f"for {percent(pressure)} of the time, a thread that could run waited for a CPU (PSI)",
            f"each process used {cores:.1f} CPUs",
        ],
        change=Change(
            text=f"Let libraries use {each} threads in each process, or run fewer processes.",
            set={f"environment_variables.{name}": str(each) for name in names},
        ),
    )


_WAITING: Final = 0.3
