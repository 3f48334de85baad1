"""Workers that wait for their input: loading in place of running.

TensorFlow's profiler calls a program bound by its input from 5 % of the time on (moderately) and from 20 % (highly);
what is said here saves more than 10 % anyway.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from parallelrun_core.adviser.advice import AdviceFinding, Change
from parallelrun_core.adviser.findings.case import Case, Guide
from parallelrun_core.figures import duration, percent

_BOUND: Final = 0.20


def findings_of(case: Case) -> Iterator[AdviceFinding]:
    """Yield the finding that loading takes a large share of a try."""
    schedule, tries = case.schedule, case.evidence.tries
    load = np.minimum(tries.load_s, np.maximum(0.0, tries.elapsed_s - tries.run_s))
    share = float(load.sum()) / max(1e-9, float(tries.elapsed_s.sum()))
    if share < _BOUND:
        return
    read = float(np.maximum(0.0, tries.read_bytes).sum())
    speed = f", {read / 1e6 / max(1e-9, float(load.sum())):.1f} MB for each second of a worker" if read else ""
    yield from case.faster(
        "reading",
        schedule.seconds(np.maximum(0.0, schedule.work - load[schedule.last]) + schedule.lost + schedule.fixed_s),
        guide=Guide.NETWORK,
        title=f"Workers spend {percent(share)} of their time on loading their input.",
        evidence=[
            f"half of the mini-batches waited longer than {duration(float(np.median(load)))} for their data, and half "
            f"ran longer than {duration(float(np.median(tries.run_s)))}{speed}",
        ],
        change=Change(
            text="Bring the input nearer (a disk of the node, a store of the same region), in a format of which less "
            "has to be read (Parquet), or in fewer, larger files."
        ),
    )
