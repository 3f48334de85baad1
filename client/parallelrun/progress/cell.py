"""The output below a cell of a notebook while it runs, kept up to date."""

from __future__ import annotations

import secrets
import sys
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, Final, Self

from parallelrun.progress.text import MAY_WAIT, describe, waiting_words
from parallelrun.progress.widget import drawn, drawn_job, text_of
from parallelrun_core.answers.jobs import Job, PipelineStep
from parallelrun_core.answers.waiting import Waiting
from parallelrun_core.wire.pace import Speed
from parallelrun_core.wire.progress import Progress

_EVERY_S: Final = 0.5


def is_in_notebook() -> bool:
    """Return whether this process is the kernel of a notebook, which shows HTML. A terminal with IPython isn't."""
    get_shell: Callable[[], Any] = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)
    return getattr(get_shell(), "kernel", None) is not None


class Cell:
    """A display below a cell, which is drawn over and over, but not more often than eyes follow."""

    def __init__(self) -> None:
        self._id = secrets.token_hex(8)
        self._is_there = False
        self._next_at = 0.0
        self._speed = Speed()

    def show_job(self, job: Job) -> None:
        now = time.monotonic()
        self._speed.add(now, job.progress)
        if self._is_due(now, at_once=job.has_ended):
            rates = {} if job.has_ended else self.rates(now, job.progress)
            self.draw(drawn_job(job, **rates), text_of(job))

    def add(self, now: float, progress: Progress) -> None:
        """Note the counts, for the speed."""
        self._speed.add(now, progress)

    def rates(self, now: float, progress: Progress) -> dict[str, float | None]:
        """Return how fast it is, and how long it will take."""
        return {"items_per_s": self._speed.items_per_s(now), "left_s": self._speed.left_s(now, progress)}

    def draw(self, html: str, text: str) -> None:
        """Show this in place of what is there. A front end that has gone away is no reason to end the job."""
        display = import_module("IPython.display")  # it is loaded, since this is a notebook
        tell = display.update_display if self._is_there else display.display
        tell({"text/html": html, "text/plain": text}, raw=True, display_id=self._id)
        self._is_there = True

    def _is_due(self, now: float, *, at_once: bool) -> bool:
        if now < self._next_at and not at_once:
            return False
        self._next_at = now + _EVERY_S
        return True


class NotebookDisplay:
    """Shows the progress of a job below a cell, as others do on a terminal."""

    def __init__(self, *, title: str) -> None:
        self._title = title
        self._cell = Cell()
        self._state, self._progress = "starting", Progress()
        self._steps: Sequence[PipelineStep] = ()
        self._waiting: Waiting | None = None
        self._notes: list[str] = []
        self._drawn_at = float("-inf")

    def update(self, state: str, progress: Progress) -> None:
        self._cell.add(time.monotonic(), progress)
        is_new = state != self._state
        self._state, self._progress = state, progress
        if progress.running or state not in MAY_WAIT:
            self._waiting = None
        self._draw(at_once=is_new)

    def waiting(self, waiting: Waiting | None) -> None:
        self._waiting = waiting
        self._draw(at_once=True)

    def steps(self, state: str, steps: Sequence[PipelineStep]) -> None:
        self._state, self._steps = state, steps
        self._draw()

    def note(self, text: str) -> None:
        self._notes.append(text)
        self._draw(at_once=True)

    def __enter__(self) -> Self:
        self._draw(at_once=True)
        return self

    def __exit__(self, *exc: object) -> None:
        self._draw(at_once=True)

    def _draw(self, *, at_once: bool = False) -> None:
        now = time.monotonic()
        if not at_once and now - self._drawn_at < _EVERY_S:
            return
        self._drawn_at = now
        rates = self._cell.rates(now, self._progress)
        words = waiting_words(self._waiting)
        notes = [*self._notes, words] if words else self._notes
        html = drawn(self._title, self._state, self._progress, **rates, steps=self._steps, notes=notes)
        self._cell.draw(html, f"{self._title}: {describe(self._state, self._progress, **rates)}")
