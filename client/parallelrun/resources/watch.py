"""Shows a job's events on a display until the job has ended."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from parallelrun.errors import ApiError
from parallelrun.models import Job
from parallelrun.progress.display import Display
from parallelrun.progress.plain import display_on
from parallelrun.progress.text import clean
from parallelrun_core.wire.progress import Progress
from parallelrun_core.wire.states import TERMINAL

if TYPE_CHECKING:
    from parallelrun.client import Client

_MANY: Final = 10
_TOO_MANY_REQUESTS: Final = 429
_REPORTED_AFTER_S: Final = 3.0
"""After so long without an answer, a connection that broke is worth a word."""


def watch(client: Client, job: Job, display: Display, *, on_disconnect: Callable[[], None] = lambda: None) -> Job:
    """Follow a job or a pipeline to its end, and return it as it is then.

    Args:
        on_disconnect: called whenever the connection breaks; may raise to give up.

    Raises:
        ConnectionFailed: the server was away for too long.
    """
    away = _Away(display, on_disconnect)
    if job.is_pipeline:
        for now in client.jobs.follow(job.id, on_disconnect=away.lost):
            away.note_answer()
            display.steps(now.state, now.steps)
            job = now
        return job
    return _watch_job(client, job.id, display, away)


class _Away:
    """The state of the server, which is away or not; a change is reported once.

    A connection that broke is no news while the next one may be answered at once: servers that restart, and proxies
    that end long answers, close it. Nor is a server that answers that it is busy.
    """

    def __init__(self, display: Display, on_disconnect: Callable[[], None]) -> None:
        self._since: float | None = None
        self._is_reported = False
        self._display = display
        self._on_disconnect = on_disconnect

    def lost(self, error: Exception) -> None:
        """Take note that the connection broke, or could not be made."""
        now = time.monotonic()
        self._since = now if self._since is None else self._since
        is_busy = isinstance(error, ApiError) and error.status == _TOO_MANY_REQUESTS
        if not self._is_reported and not is_busy and now - self._since >= _REPORTED_AFTER_S:
            self._is_reported = True
            self._display.note(f"connection lost ({clean(str(error))}); trying again")
        self._on_disconnect()

    def note_answer(self) -> None:
        """Take note that the server has answered."""
        if self._is_reported:
            self._display.note("connected again")
        self._since, self._is_reported = None, False


def _watch_job(client: Client, job_id: str, display: Display, away: _Away) -> Job:
    state, progress = "", Progress()
    shown_counts: dict[str, int] = {}
    for event in client.jobs.events(job_id, on_disconnect=away.lost):
        away.note_answer()
        now = state
        match event.event:
            case "snapshot" | "end":
                job = event.job()
                now, progress = job.state, job.progress
                display.waiting(job.waiting)
            case "waiting":
                display.waiting(event.waiting())
            case "state":
                now = str(event.data.get("state", state))
            case "progress":
                progress = event.progress()
            case "error":
                _show_error(display, event.data, shown_counts)
        if now not in TERMINAL:  # the end is reported later, and once
            state = now
        if state:
            display.update(state, progress)
    return client.jobs.get(job_id)


def watch_on_stderr(client: Client, job: Job) -> Job:
    """Follow a job to its end with a display on stderr."""
    with display_on(sys.stderr, title=job.name or job.id) as display:
        return watch(client, job, display)


def _show_error(display: Display, data: dict[str, Any], shown_counts: dict[str, int]) -> None:
    """Show each kind of error once, and again when there are ten times as many."""
    count = int(data.get("count") or 1)
    signature = f"{data.get('category', '')}: {data.get('message', '')}"
    if count < shown_counts.get(signature, 0):
        return
    shown_counts[signature] = count * _MANY
    display.note(f"{'' if count == 1 else f'{count:,} times: '}{clean(signature, most=500)}")
