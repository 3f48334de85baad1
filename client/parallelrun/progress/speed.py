"""The speed of a job right now, and the time that it will take, as its leader has counted in the last minutes."""

from __future__ import annotations

from parallelrun_core.wire import pace
from parallelrun_core.wire.progress import Progress


class Speed:
    """Gets the counts as they come. Its answers are for the moment of the question, not of the last change, so a job
    that stands still is seen to slow down. Clocks of the server and of this machine need not agree."""

    def __init__(self) -> None:
        self._progress = Progress()
        self._came_at = 0.0

    def add(self, now: float, progress: Progress) -> None:
        """Note the counts at this time of the monotonic clock."""
        if progress.recent_to != self._progress.recent_to:
            self._came_at = now
        self._progress = progress

    def items_per_s(self, now: float) -> float | None:
        """Items decided per second; None while it is too early to tell."""
        return pace.items_per_s(self._progress, self._server_time(now))

    def left_s(self, now: float, progress: Progress) -> float | None:
        """Seconds until everything is decided at this speed; None while the total or the speed isn't known."""
        return pace.left_s(progress, self._server_time(now))

    def _server_time(self, now: float) -> float:
        return self._progress.recent_to + now - self._came_at
