"""Progress as lines of text: one when something has changed, but not too many."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Self, TextIO

from parallelrun.progress.steps import describe_pipeline, describe_step
from parallelrun.progress.text import MAY_WAIT, clean, describe, waiting_words
from parallelrun_core.wire.pace import Speed
from parallelrun_core.wire.progress import Progress

if TYPE_CHECKING:
    from parallelrun_core.answers.jobs import PipelineStep
    from parallelrun_core.answers.waiting import Waiting

EVERY_S: Final = 2.0
STILL_THERE_S: Final = 60.0
"""After this long without a change the last line is repeated, so that nobody takes silence for a hang."""


class PlainDisplay:
    """Writes to a stream that is not a terminal.

    A change of state is shown at once, changes of numbers at most every `every_s`. A thread makes sure that the
    newest numbers are shown in the end, even if no further change comes.
    """

    def __init__(self, stream: TextIO, *, every_s: float = EVERY_S, still_there_s: float = STILL_THERE_S) -> None:
        self._stream = stream
        self._every_s = every_s
        self._still_there_s = still_there_s
        self._speed = Speed()
        self._state = ""
        self._progress = Progress()
        self._waiting: Waiting | None = None
        self._stood: dict[str, str] = {}
        """The steps of a pipeline, and how they stood."""
        self._of_steps = ""
        self._shown = ""
        self._shown_at = float("-inf")
        self._pending = False
        self._closed = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="progress", daemon=True)

    def update(self, state: str, progress: Progress) -> None:
        with self._changed:
            now = time.monotonic()
            self._speed.add(now, progress)
            at_once = state != self._state
            self._pending = self._pending or at_once or progress != self._progress
            self._state, self._progress = state, progress
            if progress.running or state not in MAY_WAIT:
                self._waiting = None
            if at_once:
                self._show(now)
            self._changed.notify()

    def waiting(self, waiting: Waiting | None) -> None:
        """Show what the job waits for: at once if that is another thing than before, else with the next line."""
        with self._changed:
            is_new = waiting is not None and (self._waiting is None or self._waiting.condition != waiting.condition)
            self._waiting = waiting
            if is_new:
                self._show(time.monotonic())
            self._changed.notify()

    def steps(self, state: str, steps: Sequence[PipelineStep]) -> None:
        """Show these steps of a pipeline from now on: a line for each that stands otherwise than before."""
        with self._changed:
            for step in steps:
                if self._stood.get(step.name, "waiting") != step.state:
                    self._write(f"{step.name}: {describe_step(step)}")
                self._stood[step.name] = step.state
            line = describe_pipeline(state, steps)
            self._pending = self._pending or line != self._of_steps
            self._state, self._of_steps = state, line
            self._changed.notify()

    def note(self, text: str) -> None:
        with self._changed:
            self._write(clean(text, lines=True))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        with self._changed:
            self._closed = True
            if self._pending:
                self._show(time.monotonic())
            self._changed.notify()
        self._thread.join()

    def _run(self) -> None:
        with self._changed:
            while not self._closed:
                since_s = time.monotonic() - self._shown_at
                due_s = (self._every_s if self._pending else self._still_there_s) - since_s
                if due_s <= 0 and self._state:
                    self._show(time.monotonic(), again=not self._pending)
                else:
                    self._changed.wait(due_s if self._state else None)

    def _show(self, now: float, *, again: bool = False) -> None:
        line = self._of_steps or self._line(now)
        if line != self._shown or again:
            self._write(line)
        self._shown, self._shown_at, self._pending = line, now, False

    def _line(self, now: float) -> str:
        if words := waiting_words(self._waiting):
            return f"{self._state}: {words}"
        items_per_s, left_s = self._speed.items_per_s(now), self._speed.left_s(now, self._progress)
        return describe(self._state, self._progress, items_per_s=items_per_s, left_s=left_s)

    def _write(self, line: str) -> None:
        try:
            self._stream.write(line + "\n")
            self._stream.flush()
        except (OSError, ValueError):
            pass  # nobody reads this any more, but the job continues
