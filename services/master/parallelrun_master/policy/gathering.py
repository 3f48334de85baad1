"""Gathering: how long to let entries gather before they are recorded. Pure arithmetic, no I/O.

Each reading of the stream costs a round trip, a sync and another round trip, for one outcome or a thousand. While
much is left to do, nobody waits for a single outcome. Near the end, the end of the job waits for it.
"""

from __future__ import annotations

from parallelrun_core.wire.progress import Progress

_LEAST_S = 0.01
_MOST_S = 0.1
_SHARE = 0.05
"""Of the time that the rest of the job is expected to take."""


class Gathering:
    """Decides how long to wait for more entries, at the speed at which mini-batches have been decided so far.

    Args:
        progress: of the job; kept up to date by others.
    """

    def __init__(self, progress: Progress, now: float) -> None:
        self._progress = progress
        self._began = now

    def wait_s(self, arrived: int, now: float, *, is_urgent: bool = False) -> float:
        """Return how long to wait for more, when this many outcomes have come in that are not recorded yet.

        Args:
            is_urgent: what is done next may depend on them.
        """
        if is_urgent:
            return 0.0
        decided = self._progress.decided + arrived
        undecided = self._progress.scheduled - decided
        if undecided <= 0 or not decided:
            return 0.0
        left_s = (now - self._began) * undecided / decided
        return min(_MOST_S, max(_LEAST_S, _SHARE * left_s))
