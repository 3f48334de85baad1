"""A node that is slower than the others, and nodes that the job hardly needs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from parallelrun_core.adviser.advice import AdviceFinding, Change
from parallelrun_core.adviser.evidence import groups_of
from parallelrun_core.adviser.findings.case import Case, Guide
from parallelrun_core.figures import counted, duration, percent

_SLOW: Final = 1.5
"""Databricks' and Spark's advice takes 1.5 times a high quantile for skew; nodes are compared by medians, which vary
less."""
_LEAST: Final = 5
"""Mini-batches of a node, to say something about it."""
_HARDLY_SLOWER: Final = 1.05


def findings_of(case: Case) -> Iterator[AdviceFinding]:
    """Slow ones, then those that are too many."""
    yield from _slow(case)
    yield from _too_many(case)


def _slow(case: Case) -> Iterator[AdviceFinding]:
    schedule, names = case.schedule, case.evidence.nodes
    per_item = schedule.work / np.maximum(schedule.items, 1)
    medians = {node: float(np.median(per_item[mine])) for node, mine in groups_of(schedule.node) if len(mine) >= _LEAST}
    if len(medians) < 2:
        return
    usual = float(np.median(list(medians.values())))
    if len(medians) == 2:
        usual = min(medians.values())
    slow = {node: median / usual for node, median in medians.items() if usual and median > _SLOW * usual}
    if not slow or len(slow) * 2 > len(medians):
        return
    factors = np.ones(len(names))
    for node, factor in slow.items():
        factors[node] = factor
    predicted = schedule.seconds(schedule.work / factors[schedule.node] + schedule.lost + schedule.fixed_s)
    node_names = [names[node] for node in slow]
    worst = max(slow, key=lambda node: slow[node])
    yield from case.faster(
        "slow_node",
        predicted,
        guide=Guide.NODES,
        title=f"{_listed(node_names)} slower than the others: {slow[worst]:.1f} times as long for the same.",
        evidence=[
            f"{names[node]}: half of its mini-batches took {duration(medians[node])} or more for an item, "
            f"of the others {duration(usual)}"
            for node in slow
        ],
        change=Change(
            text="See what else runs there, and its disk and memory (logs/sys/perf). Replace it, or stop its agent: "
            "its mini-batches go to the others."
        ),
        nodes=node_names,
    )


def _listed(names: list[str]) -> str:
    return f"Node {names[0]} is" if len(names) == 1 else f"Nodes {', '.join(names[:5])} are"


def _too_many(case: Case) -> Iterator[AdviceFinding]:
    """Nodes without which the job would take hardly longer: they cost money, no time."""
    schedule, thresholds = case.schedule, case.thresholds
    now, took = schedule.nodes, schedule.measured_s
    if now < 2 or case.evidence.is_running:
        return
    enough = now
    low, high = 1, now
    while low <= high:  # the time never grows with the number of nodes, but for a few percent
        middle = (low + high) // 2
        if schedule.seconds(ready=schedule.lanes_of(nodes=middle)) <= _HARDLY_SLOWER * took:
            enough, high = middle, middle - 1
        else:
            low = middle + 1
    predicted = schedule.seconds(ready=schedule.lanes_of(nodes=enough))
    saved = now * took - enough * predicted
    share = saved / (now * took)
    if enough == now or saved <= thresholds.seconds or share <= thresholds.share:
        return
    busy = schedule.busy_s / (len(schedule.lanes) * took)
    yield AdviceFinding(
        id="too_many_nodes",
        severity="low" if share < 0.5 else "moderate",
        saves="cost",
        guide=Guide.NODES,
        title=f"{now:,} nodes are more than the job needs: {enough:,} would take {duration(predicted)} in place of "
        f"{duration(took)}.",
        evidence=[
            f"workers were busy for {percent(busy)} of their time",
            f"{case.count(len(schedule.work))} mini-batches in all",
        ],
        change=Change(text=f"Run it on {counted(enough, 'node')}.", set={"instance_count": str(enough)}),
        saving_s=took - predicted,
        saving_share=(took - predicted) / took,
        predicted_s=predicted,
        saving_node_s=saved,
    )
