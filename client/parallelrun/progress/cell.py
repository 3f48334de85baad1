"""The output below a cell of a notebook while it runs, kept up to date."""

from __future__ import annotations

import secrets
import sys
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any, Final, Self

from parallelrun.progress.display import Display
from parallelrun.progress.text import describe, waiting_words
from parallelrun.progress.widget import drawn, drawn_job, text_of
from parallelrun_core.answers.jobs import Job
from parallelrun_core.wire.pace import Speed

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
            per_s, left_s = self._speed.items_per_s(now), self._speed.left_s(now, job.progress)
            rates = {} if job.has_ended else {"items_per_s": per_s, "left_s": left_s}
            self.draw(drawn_job(job, **rates), text_of(job))

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


class NotebookDisplay(Display):
    """Shows the progress of a job below a cell, as others do on a terminal."""

    def __init__(self, *, title: str) -> None:
        super().__init__()
        self._title = title
        self._cell = Cell()
        self._notes: list[str] = []
        self._drawn_at = float("-inf")

    def note(self, text: str) -> None:
        with self._lock:
            self._notes.append(text)
            self._draw(time.monotonic())

    def __enter__(self) -> Self:
        self._draw(time.monotonic())
        return self

    def __exit__(self, *exc: object) -> None:
        self._draw(time.monotonic())

    def _changed(self, *, at_once: bool, is_other: bool) -> None:
        now = time.monotonic()
        if at_once or now - self._drawn_at >= _EVERY_S:
            self._draw(now)

    def _draw(self, now: float) -> None:
        self._drawn_at = now
        rates, words = self._rates(now), waiting_words(self._waiting)
        notes = [*self._notes, words] if words else self._notes
        html = drawn(self._title, self._state, self._progress, **rates, steps=self._steps, notes=notes)
        self._cell.draw(html, f"{self._title}: {describe(self._state, self._progress, **rates)}")
