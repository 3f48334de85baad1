"""How many mini-batches to hand to a worker at once. Pure policy, no I/O.

Short mini-batches cost more in hand-overs than in work, so a worker gets several ahead: as many as it will finish
within a blink. As soon as they are long, it gets one at a time, and every node has its fair share.
"""

from __future__ import annotations

HORIZON_S = 0.1
"""How much work may wait behind the one that runs."""
MAX_DEPTH = 256
SLOW_HEAD_S = 0.1
"""A head that runs longer than this has surprised us: what waits behind it is taken back."""

TURN_S = 0.0003
"""About what a turn takes, with all that wakes for it. An answer that comes sooner than that is worth waiting for."""

_RISE, _FALL = 0.5, 0.1
_FORGET = 0.02


class LookAhead:
    """Learns from each finished run() how many mini-batches a worker may have in flight."""

    def __init__(self, *, enabled: bool) -> None:
        self._enabled = enabled
        self._run_s: float | None = None
        self.shortest_s = 0.0
        """About the shortest of late."""
        self.depth = 1
        """How many a worker may have in hand, the running one included."""

    @property
    def is_brief(self) -> bool:
        """One in hand takes less than half of a turn: most of the time goes into turns."""
        return self.depth == 1 and self._run_s is not None and self._run_s < TURN_S / 2

    def observe(self, run_s: float) -> None:
        """Take note of one run(). Long ones are believed quickly, short ones slowly."""
        if self._run_s is None:
            self._run_s = self.shortest_s = run_s
        else:
            weight = _RISE if run_s > self._run_s else _FALL
            self._run_s += weight * (run_s - self._run_s)
            if run_s < self.shortest_s:
                self.shortest_s = run_s
            else:
                self.shortest_s += _FORGET * (run_s - self.shortest_s)
        if self._enabled:
            self.depth = max(1, min(MAX_DEPTH, int(HORIZON_S / max(self._run_s, 1e-6))))
