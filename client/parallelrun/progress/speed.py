"""The speed of a job right now, and the time that it will take, judged by the last seconds."""

from __future__ import annotations

from collections import deque
from typing import Final

from parallelrun_core.wire.progress import Progress

WINDOW_S: Final = 30.0
_SHORTEST_S: Final = 1.0


class Speed:
    """Gets the counts as they come. Its answers are for the moment of the question, not of the last change, so a job
    that stands still is seen to slow down."""

    def __init__(self) -> None:
        self._samples: deque[tuple[float, int]] = deque()

    def add(self, now: float, progress: Progress) -> None:
        """Note the counts at this time of the monotonic clock."""
        items = progress.items_done + progress.items_failed
        if self._samples and items < self._samples[-1][1]:
            self._samples.clear()  # a retry by the user: counting starts again
        if progress.resumed and progress.done <= progress.resumed:
            self._samples.clear()  # what was taken over from another job took no time
        self._samples.append((now, items))
        # One sample from before the window stays: the first change in the window is measured from there.
        while len(self._samples) > 2 and self._samples[1][0] < now - WINDOW_S:
            self._samples.popleft()

    def items_per_s(self, now: float) -> float | None:
        """Items decided per second; None while it is too early to tell."""
        if not self._samples:
            return None
        began, first = self._samples[0]
        lasted = now - began
        if lasted < _SHORTEST_S or self._samples[-1][1] == first:
            return None
        return (self._samples[-1][1] - first) / lasted

    def left_s(self, now: float, progress: Progress) -> float | None:
        """Seconds until everything is decided at this speed; None while the total or the speed isn't known."""
        per_s = self.items_per_s(now)
        items = progress.items_done + progress.items_failed
        remaining_items: float = progress.items_found - items
        if not remaining_items and progress.decided:  # a table, whose rows are known once they are read
            remaining_items = items / progress.decided * (progress.scheduled - progress.decided)
        if per_s is None or not progress.knows_items or remaining_items <= 0:
            return None
        return remaining_items / per_s
