"""Pace of a job: how long it has waited and worked, how fast it is, and how much time is left.

The leader notes what is decided in the last minutes (`Progress.recent_…`). The page, REST, command line and reports get
their figures from here, so that none of them counts what an earlier run of the job has decided.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from parallelrun_core.wire.progress import Progress
from parallelrun_core.wire.states import JobState

_SHORTEST_S: Final = 1.0
"""A pace that was measured for less time is chance."""


class Standing(StrEnum):
    """The stage of a job: its state, with waiting and working told apart."""

    QUEUED = "queued"
    WAITING_FOR_WORKERS = "waiting_for_workers"
    """A leader has it, and no node has a worker for it."""
    STARTING = "starting"
    """Its workers are being started: environments are built, `init()` runs."""
    RUNNING = "running"
    PAUSED = "paused"
    """Somebody has paused it: nodes begin nothing more of it."""
    FINALIZING = "finalizing"
    ENDED = "ended"


def standing_of(state: JobState, progress: Progress, *, is_paused: bool = False) -> Standing:
    if is_paused and state in (JobState.QUEUED, JobState.PROCESSING):
        return Standing.PAUSED
    if state is not JobState.PROCESSING:
        return Standing.ENDED if state.is_terminal else Standing(state.value)
    has_work = progress.published > progress.decided
    if progress.running or not progress.queued_at or not has_work:
        return Standing.RUNNING
    if progress.preparing:
        return Standing.STARTING
    if not progress.workers:
        return Standing.WAITING_FOR_WORKERS
    return Standing.RUNNING if progress.worked_from else Standing.STARTING


def waited_s(progress: Progress, until: float) -> float:
    """Seconds from the submission, or the last resume or retry, to the first worker; to `until` if there was none."""
    return max(0.0, (progress.worked_from or until) - progress.queued_at) if progress.queued_at else 0.0


def ran_s(progress: Progress, until: float) -> float:
    """Seconds from the first worker since then to `until`; 0: none yet."""
    return max(0.0, until - progress.worked_from) if progress.worked_from else 0.0


def mini_batches_per_s(progress: Progress, now: float) -> float | None:
    """Mini-batches decided per second in the last minutes; None while it is too early to tell."""
    return _per_s(progress.recent_mini_batches, progress, now)


def items_per_s(progress: Progress, now: float) -> float | None:
    """Items decided per second in the last minutes; None while it is too early to tell."""
    return _per_s(progress.recent_items, progress, now)


def overall_items_per_s(progress: Progress, until: float) -> float | None:
    """Items decided per second in all of the last run, which ended at `until`."""
    ran = ran_s(progress, until)
    items = progress.items_decided - progress.items_before
    return items / ran if ran > 0 and items > 0 else None


def left_s(progress: Progress, now: float) -> float | None:
    """Seconds until everything is decided; None while the total or the pace isn't known.

    It is the time for what is left at the pace of the last minutes, counted from the last decision on: what runs since
    then is on its way. Or it is the time for the mini-batch that runs for longest, if that takes longer: one that has
    run for longer than others take is expected to run as long again.
    """
    items = progress.items_decided
    if progress.knows_items and progress.items_found > items:
        remaining, per_s = progress.items_found - items, items_per_s(progress, now)
    elif progress.listing_done:  # a table, whose rows are known once they are read
        remaining, per_s = progress.scheduled - progress.decided, mini_batches_per_s(progress, now)
    else:
        return None
    if not per_s or remaining <= 0:
        return None
    on_its_way_s = min(max(0.0, now - progress.recent_to), _usual_gap_s(progress))
    return max(remaining / per_s - on_its_way_s, longest_left_s(progress, now) or 0.0)


def longest_left_s(progress: Progress, now: float) -> float | None:
    """Seconds that the mini-batch that runs for longest is expected to take still; None: none is known."""
    if progress.longest < 0 or not progress.longest_since:
        return None
    elapsed_s = max(0.0, now - progress.longest_since)
    usual_s = mini_batch_s(progress, now)
    return usual_s - elapsed_s if usual_s is not None and elapsed_s < usual_s else elapsed_s


def mini_batch_s(progress: Progress, now: float) -> float | None:
    """Seconds that a mini-batch takes in a worker, by how many ran at once and the pace (Little's law); None: not known
    yet."""
    per_s = mini_batches_per_s(progress, now)
    return progress.running / per_s if per_s and progress.running else None


def _usual_gap_s(progress: Progress) -> float:
    """Seconds without a decision that say nothing of the pace: as long as a mini-batch takes, by the last decisions."""
    if not progress.recent_mini_batches:
        return 0.0
    return progress.running * (progress.recent_to - progress.recent_from) / progress.recent_mini_batches


def _per_s(count: int, progress: Progress, now: float) -> float | None:
    gap_s = max(0.0, now - progress.recent_to - _usual_gap_s(progress))
    lasted = progress.recent_to - progress.recent_from + gap_s
    return count / lasted if count and progress.recent_from and lasted >= _SHORTEST_S else None


class Speed:
    """The speed of a job right now, and the time that it will take, for a client that gets its counts as they come.

    The answers are for the moment of the question, not of the last change, so a job that stands still is seen to slow
    down. Clocks of the server and of the client's machine need not agree.
    """

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
        return items_per_s(self._progress, self._server_time(now))

    def left_s(self, now: float, progress: Progress) -> float | None:
        """Seconds until everything is decided at this speed; None while the total or the speed isn't known."""
        return left_s(progress, self._server_time(now))

    def _server_time(self, now: float) -> float:
        return self._progress.recent_to + now - self._came_at
