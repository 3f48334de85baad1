"""Memory that runs out, and CPU time that a quota takes away.

Memory: systemd-oomd acts when processes wait for memory for 60 % of 30 s; here, half of that over a whole job.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from parallelrun_core.adviser.advice import AdviceFinding, Change
from parallelrun_core.adviser.findings.case import Case, Guide
from parallelrun_core.adviser.findings.drift import memory_growth
from parallelrun_core.figures import counted, percent

_FULL: Final = 0.90
_WAITS: Final = 0.30
_THROTTLED: Final = 0.05
_GB: Final = 1 << 30


def findings_of(case: Case) -> Iterator[AdviceFinding]:
    """Return what endangers the job, then what slows it down."""
    yield from _memory(case)
    yield from _quota(case)


def _memory(case: Case) -> Iterator[AdviceFinding]:
    evidence, now = case.evidence, case.schedule.processes_per_node
    peak = float(evidence.tries.peak_bytes.max())
    killed = _tries_with(case, "OOM_KILLED")
    totals = {name: use.memory_bytes for name, use in evidence.uses.items() if use.memory_bytes}
    full = {name: now * peak / total for name, total in totals.items() if now * peak > _FULL * total}
    pressures = {name: use.memory_pressure or 0.0 for name, use in evidence.uses.items()}
    waits = {name: share for name, share in pressures.items() if share > _WAITS}
    if not (killed or full or waits):
        return
    fit = [int(0.8 * total / peak) for total in totals.values() if peak]
    fewer = max(1, min([now - 1, *fit]))
    sentences = [f"{case.count(killed)} tries ended because the node had no memory left"] if killed else []
    sentences += [
        f"{counted(now, 'worker')} with {peak / _GB:.2f} GB each need {percent(each)} of {name}"
        for name, each in full.items()
    ]
    sentences += [
        f"on {name}, processes waited for memory for {percent(each)} of the time" for name, each in waits.items()
    ]
    if (grown := memory_growth(case)) > 0.2:
        sentences.append(
            f"a worker's memory grew by {percent(grown)} from its first quarter of mini-batches to its last"
        )
    text = (
        f"Run {counted(fewer, 'process')} on each node, or need less memory in each: smaller mini-batches, and nothing "
        "kept."
    )
    yield AdviceFinding(
        id="memory",
        severity="critical" if killed else "severe",
        saves="risk",
        guide=Guide.WORKERS,
        title="Memory runs out." if killed or waits else "The memory of the nodes is nearly used up.",
        evidence=sentences,
        change=Change(text=text, set={"max_concurrency_per_instance": str(fewer)} if fewer < now else {}),
        nodes=sorted({*full, *waits}),
    )


def _tries_with(case: Case, category: str) -> int:
    names = case.evidence.categories
    is_it = np.array([name == category for name in names])
    return int(is_it[case.evidence.tries.category].sum())


def _quota(case: Case) -> Iterator[AdviceFinding]:
    schedule, uses = case.schedule, case.evidence.uses
    # Of several threads of a process, one is enough to hold it up.
    now = schedule.processes_per_node
    shares = {name: min(0.95, (use.throttled or 0.0) / now) for name, use in uses.items()}
    throttled = {name: share for name, share in shares.items() if share > _THROTTLED}
    if not throttled:
        return
    unthrottled_share = 1 - np.array([throttled.get(name, 0.0) for name in case.evidence.nodes])
    work = schedule.work * unthrottled_share[schedule.node]
    worst = max(throttled, key=lambda name: throttled[name])
    yield from case.faster(
        "cpu_quota",
        schedule.seconds(work + schedule.lost + schedule.fixed_s),
        guide=Guide.WORKERS,
        title=f"A CPU quota stops the workers: on {worst}, for {percent(throttled[worst])} of the time.",
        evidence=[
            f"{name}: throttled for {percent(share)} of the time (cpu.stat)" for name, share in throttled.items()
        ],
        change=Change(
            text="Raise the CPU limit of the agent's container or service (`cpus:` in compose, `resources.limits.cpu`, "
            "`CPUQuota=`), or run as many processes as it has CPUs."
        ),
        nodes=sorted(throttled),
    )
