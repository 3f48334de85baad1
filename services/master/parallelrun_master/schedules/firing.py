"""Acts upon the times at which schedules are due.

What becomes of a time is written down before the job is made, and the job's id follows from schedule and time: so
whatever dies in between, the next one who looks makes the very same job.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Final

from parallelrun_core.errors import ParallelRunError
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.intake.launching import launch
from parallelrun_core.intake.prepared import TRIGGER_TIME, job_of
from parallelrun_core.schedules.fires import FireLog
from parallelrun_core.schedules.occurrences import Occurrences, next_of
from parallelrun_core.schedules.policy import FireOutcome, decide
from parallelrun_core.schedules.records import FireRecord, Revision, rfc3339_of, stamp, utc_time
from parallelrun_core.schedules.store import ScheduleStore
from parallelrun_core.service import failpoints, telemetry
from parallelrun_core.store.connection import CONNECTION_ERRORS, Redis

log = telemetry.logger()

_READ_ANEW_S: Final = 60.0
"""As long as NFS may take to show that a folder has changed."""
_AFTER_TROUBLE_S: Final = 10.0
_LATEST: Final = 20
"""So many of a schedule's last jobs may be running."""
_NEVER: Final = float("inf")


@dataclass(frozen=True, slots=True)
class _Plan:
    """The time to look at a schedule next, in seconds since the epoch."""

    at: float
    due: Occurrences | None = None


class Firing:
    """Makes the jobs that are due. For one thread.

    Args:
        clock: the wall clock, in seconds since the epoch: what people mean by 9:30.
    """

    def __init__(self, root: Path, redis: Redis, *, clock: Callable[[], float] = time.time) -> None:
        self._root = root
        self._redis = redis
        self._clock = clock
        self._store = ScheduleStore(root)
        self._plans: dict[str, _Plan] = {}
        self._last_change = ""
        self._read_at = -_NEVER

    def check(self) -> None:
        """Act upon what is due. With nothing to do, that costs one look at a file.

        Raises one of `CONNECTION_ERRORS` while Redis is away.
        """
        now = self._clock()
        last_change = self._store.last_change()
        if last_change != self._last_change or not self._read_at <= now < self._read_at + _READ_ANEW_S:
            names = self._store.names()
            self._plans = {name: _Plan(0.0) for name in names}
            self._last_change, self._read_at = last_change, now
        for name, plan in self._plans.items():
            if plan.at <= now:
                with self._going_on(name, now):
                    self._plans[name] = _Plan(self._act(name, now))

    @contextmanager
    def _going_on(self, name: str, now: float) -> Iterator[None]:
        """Leave a schedule that can't be read, or whose job can't be made, for later, and go on with the others."""
        try:
            yield
        except CONNECTION_ERRORS:
            raise
        except (ParallelRunError, OSError, ValueError) as error:
            log.warning("schedule_delayed", schedule=name, error=f"{type(error).__name__}: {error}")
            self._plans[name] = _Plan(now + _AFTER_TROUBLE_S)

    def _act(self, name: str, now: float) -> float:
        """Do what is due now; returns when to look again."""
        revision = self._store.find(name)  # anew: it may have been disabled a moment ago
        if revision is None:
            return _NEVER
        fires = self._store.fires(name)
        ever = fires.decided()  # a clock that was ahead may have decided upon what is still to come here
        decided = [each for each in ever if each <= utc_time(now)]
        self._complete_last(fires, revision, {*ever[-1:], *decided[-1:]})
        if not revision.is_enabled:
            return _NEVER
        due, since = revision.due(), max([revision.since(), *decided[-1:]])
        following = next_of(due, since)
        if following is None:
            poll_s = revision.poll_s()
            return now + poll_s if poll_s else _NEVER
        if following > utc_time(now):
            return following.timestamp()
        running = "" if revision.may_overlap else self._running(fires)
        decision = decide(
            due,
            since=since,
            now=utc_time(now),
            missed=revision.missed,
            is_running=bool(running),
            may_overlap=revision.may_overlap,
        )
        if decision is None:
            return now
        fire = FireRecord(
            due=rfc3339_of(decision.due),
            at=now,
            outcome=decision.outcome,
            revision=revision.number,
            job_id=revision.job_id(decision.due) if decision.outcome.has_job else "",
            passed_over=decision.passed_over,
            why=_why(decision.outcome, running),
        )
        fires.decide(fire, decision.due)
        failpoints.reach("fire.decided")
        self._complete(fires, revision, decision.due)
        fires.trim()
        return now  # what is due next is found out at the next look

    def _complete_last(self, fires: FireLog, revision: Revision, last: set[datetime]) -> None:
        """Make the jobs upon which masters have decided that were killed before they made them."""
        for due in sorted(last):
            self._complete(fires, revision, due)

    def _complete(self, fires: FireLog, revision: Revision, due: datetime) -> None:
        """Make the job for a time upon which somebody has decided, unless that was done."""
        fire = fires.find(due)
        if fire is None or not fire.outcome.has_job or fires.is_launched(due):
            return
        if fire.revision != revision.number:
            revision = self._store.find(fires.schedule, fire.revision) or revision
        note = f"made by the schedule {fires.schedule!r} for {fire.due}"
        record = job_of(revision.job, fire.job_id, submitted=fire.at, values={TRIGGER_TIME: stamp(due)}, note=note)
        launch(self._redis, self._root, record)
        failpoints.reach("fire.launched")
        fires.note_launched(due)
        log.info("schedule_fired", schedule=fires.schedule, due=fire.due, job_id=fire.job_id)

    def _running(self, fires: FireLog) -> str:
        """The id of a job of this schedule that has not ended; empty if there is none."""
        with_jobs = (each for _, each in fires.latest_first() if each.outcome.has_job)
        for fire in islice(with_jobs, _LATEST):
            folder = JobFolder(self._root, fire.job_id)
            if folder.has_record and not folder.has_ended:
                return fire.job_id
        return ""


def _why(outcome: FireOutcome, running: str) -> str:
    match outcome:
        case FireOutcome.SKIPPED:
            return f"job {running} had not ended"
        case FireOutcome.MISSED:
            return "nobody made it in time, and what was missed is skipped"
    return ""
