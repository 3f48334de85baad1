"""The cost that a script reports, in memory that its agent has mapped, too: no death of the worker loses it.

Whole billionths of a US dollar: sums of them are exact, and a single token of the cheapest model has a price.
"""

from __future__ import annotations

import math
import os
import threading
from typing import TYPE_CHECKING, ClassVar

from parallelrun_worker import frames

if TYPE_CHECKING:
    from mmap import mmap

NANO_PER_USD = 10**9
_MOST_USD = 10**6


class CostCounter:
    """The cost that a process has reported so far; safe in threads.

    Args:
        ring: the memory that the agent has mapped; None: outside of a job, nobody else has to know.
    """

    process: ClassVar[CostCounter]

    def __init__(self, ring: mmap | None = None) -> None:
        memory = memoryview(bytearray(frames.COST.size) if ring is None else ring)
        begin = 0 if ring is None else frames.COST_AT
        # Such a cell is written at once, never byte by byte: the agent may read it at any time.
        self._cell = memory[begin : begin + frames.COST.size].cast("q")
        self._lock = threading.Lock()
        self._pid = os.getpid()

    def add(self, usd: float) -> float:
        """Add to the cost, and return all of it, in US dollars.

        Raises:
            ValueError: it is no amount of money.
            RuntimeError: the script has forked this process, and its worker doesn't see what it counts.
        """
        nano = _nano(usd)
        if os.getpid() != self._pid:
            raise RuntimeError(
                "report_cost() was called in a process that the script has forked: return the cost to the worker's own "
                "process, and report it there"
            )
        with self._lock:
            self._cell[0] += nano
            return self._cell[0] / NANO_PER_USD


CostCounter.process = CostCounter()


def _nano(usd: float) -> int:
    try:
        number = float(usd)
    except (TypeError, ValueError):
        number = math.nan
    if not 0 <= number <= _MOST_USD:
        raise ValueError(
            f"report_cost(usd) takes the cost of a call in US dollars, from 0 to {_MOST_USD:,}, not {usd!r}"
        )
    return round(number * NANO_PER_USD)
