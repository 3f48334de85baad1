"""Counts, for all who show it, what is decided in the last minutes, and since when a job has workers. Pure."""

from __future__ import annotations

from collections import deque
from typing import Final, NamedTuple

from parallelrun_core.wire.progress import Progress

WINDOW_S: Final = 120.0
FEWEST: Final = 10
"""Decided mini-batches that the window has at least, however long ago the first of them was."""
EVERY_S: Final = 1.0


class CountsAt(NamedTuple):
    """The counts at a time of the epoch."""

    at: float
    decided: int
    items: int


class PaceKeeper:
    """Keeps the fields of a job's progress about its pace, for one term of one leader.

    Args:
        progress: as this term has found it.
        earlier: as the term before has shown it. If that was before the last resume or retry, it says nothing of this
            run.
        queued_at: time of the submission, or of the last resume or retry.
    """

    def __init__(self, progress: Progress, earlier: Progress, queued_at: float) -> None:
        self._samples = deque[CountsAt]()
        progress.queued_at = queued_at
        if earlier.queued_at == queued_at:
            for name in ("worked_from", "decided_before", "items_before"):
                setattr(progress, name, getattr(earlier, name))
        else:
            progress.decided_before = progress.decided
            progress.items_before = progress.items_decided

    def note(self, progress: Progress, now: float, *, first_try_at: float = 0.0) -> None:
        """Bring the fields up to date at this time of the epoch.

        Args:
            first_try_at: begin of the first try that has ended in this term; 0: none has.
        """
        latest = CountsAt(now, progress.decided, progress.items_decided)
        if not progress.worked_from and (progress.running or latest.decided > progress.decided_before):
            progress.worked_from = min(max(first_try_at, progress.queued_at), now) if first_try_at else now
            self._samples.append(CountsAt(progress.worked_from, progress.decided_before, progress.items_before))
        if not progress.worked_from:
            return
        samples = self._samples
        if samples and latest.decided < samples[-1].decided:
            samples.clear()  # rows were lost: some are decided again
        if not samples or latest.decided == samples[-1].decided:
            if not samples:
                samples.append(latest)
            return
        if len(samples) > 1 and now - samples[-2].at < EVERY_S:
            samples.pop()
        samples.append(latest)
        while len(samples) > 2 and samples[1].at < now - WINDOW_S and latest.decided - samples[1].decided >= FEWEST:
            samples.popleft()
        # Where the window begins, the counts were those of the last sample before it.
        is_whole = samples[1].at >= now - WINDOW_S
        progress.recent_from = max(samples[0].at, now - WINDOW_S) if is_whole else samples[0].at
        progress.recent_to = now
        progress.recent_mini_batches = latest.decided - samples[0].decided
        progress.recent_items = max(0, latest.items - samples[0].items)
