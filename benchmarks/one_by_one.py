"""As `noop`, with look-ahead off: one mini-batch in flight for each worker, so each pays its own round trip.

In turn with it, too: a bare loop of the same hops (`bare_loop.py`), which is what these cost at least.
"""

from __future__ import annotations

from benchmarks import Size
from benchmarks.noop import compare


def main(size: Size) -> dict[str, object]:
    """Measure; returns what the last line says."""
    mini_batches, rounds = {"tiny": (300, 1), "quick": (10_000, 3), "full": (100_000, 7)}[size]
    return compare(mini_batches, rounds, look_ahead=False, beside_rivals=False)
