"""Progress as lines of text, one when something has changed, but not too many: where no other display fits."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Self, TextIO

from parallelrun.progress.display import Display
from parallelrun.progress.steps import describe_pipeline, describe_step
from parallelrun.progress.text import clean, describe, waiting_words

if TYPE_CHECKING:
    from parallelrun_core.answers.jobs import PipelineStep

EVERY_S: Final = 2.0
STILL_THERE_S: Final = 60.0
"""After this long without a change the last line is repeated, so that nobody takes silence for a hang."""


class PlainDisplay(Display):
    """Writes to a stream that is not a terminal.

    A change of state is shown at once, changes of numbers at most every `every_s`. A thread makes sure that the
    newest numbers are shown in the end, even if no further change comes.
    """

    def __init__(self, stream: TextIO, *, every_s: float = EVERY_S, still_there_s: float = STILL_THERE_S) -> None:
        super().__init__("")
        self._stream = stream
        self._every_s = every_s
        self._still_there_s = still_there_s
        self._shown = ""
        self._shown_at = float("-inf")
        self._pending = False
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="progress", daemon=True)

    def steps(self, state: str, steps: Sequence[PipelineStep]) -> None:
        """Show these steps of a pipeline from now on: a line for each that stands otherwise than before."""
        with self._lock:
            states = {step.name: step.state for step in self._steps}
            for step in steps:
                if states.get(step.name, "waiting") != step.state:
                    self._write(f"{step.name}: {describe_step(step)}")
            super().steps(state, steps)

    def note(self, text: str) -> None:
        with self._lock:
            self._write(clean(text, lines=True))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        with self._lock:
            self._closed = True
            if self._pending:
                self._show(time.monotonic())
            self._lock.notify()
        self._thread.join()

    def _changed(self, *, at_once: bool, is_other: bool) -> None:
        self._pending = self._pending or is_other
        if at_once:
            self._show(time.monotonic())
        self._lock.notify()

    def _run(self) -> None:
        with self._lock:
            while not self._closed:
                since_s = time.monotonic() - self._shown_at
                due_s = (self._every_s if self._pending else self._still_there_s) - since_s
                if due_s <= 0 and self._state:
                    self._show(time.monotonic(), again=not self._pending)
                else:
                    self._lock.wait(due_s if self._state else None)

    def _show(self, now: float, *, again: bool = False) -> None:
        line = self._line(now)
        if line != self._shown or again:
            self._write(line)
        self._shown, self._shown_at, self._pending = line, now, False

    def _line(self, now: float) -> str:
        if self._steps:
            return describe_pipeline(self._state, self._steps)
        if words := waiting_words(self._waiting):
            return f"{self._state}: {words}"
        return describe(self._state, self._progress, **self._rates(now))

    def _write(self, line: str) -> None:
        try:
            self._stream.write(line + "\n")
            self._stream.flush()
        except (OSError, ValueError):
            pass  # nobody reads this any more, but the job continues


def display_on(stream: TextIO, *, title: str) -> Display:
    """A live display when the stream is a terminal or this is a notebook, plain lines otherwise."""
    if stream.isatty() and os.environ.get("TERM") != "dumb":
        from parallelrun.progress.live import LiveDisplay

        return LiveDisplay(stream, title=title)
    if "IPython" in sys.modules:
        from parallelrun.progress.cell import NotebookDisplay, is_in_notebook

        if is_in_notebook():
            return NotebookDisplay(title=title)
    return PlainDisplay(stream)
