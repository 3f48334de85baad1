"""The base of all displays of a job's progress: how the job stands."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Self

from parallelrun.progress.text import MAY_WAIT
from parallelrun_core.wire.pace import Speed
from parallelrun_core.wire.progress import Progress

if TYPE_CHECKING:
    from parallelrun_core.answers.jobs import PipelineStep
    from parallelrun_core.answers.waiting import Waiting


class Display:
    """Knows how one job stands, and shows nothing: each kind of display says how.

    Use it in a `with` statement; its methods never raise. Safe to share between threads.
    """

    def __init__(self, state: str = "starting") -> None:
        self._lock = threading.Condition()
        self._speed = Speed()
        self._state, self._progress = state, Progress()
        self._waiting: Waiting | None = None
        self._steps: Sequence[PipelineStep] = ()

    def update(self, state: str, progress: Progress) -> None:
        """Show this from now on."""
        with self._lock:
            self._speed.add(time.monotonic(), progress)
            is_new, is_changed = state != self._state, progress != self._progress
            self._state, self._progress = state, progress
            if progress.running or state not in MAY_WAIT:
                self._waiting = None
            self._changed(at_once=is_new, is_other=is_new or is_changed)

    def waiting(self, waiting: Waiting | None) -> None:
        """Show what the job waits for from now on: at once if that is another thing than before; None: nothing."""
        with self._lock:
            is_new = waiting is not None and (self._waiting is None or self._waiting.condition != waiting.condition)
            self._waiting = waiting
            self._changed(at_once=is_new, is_other=is_new)

    def steps(self, state: str, steps: Sequence[PipelineStep]) -> None:
        """Show these steps of a pipeline from now on."""
        with self._lock:
            is_other = (state, [*steps]) != (self._state, [*self._steps])
            self._state, self._steps = state, steps
            self._changed(at_once=False, is_other=is_other)

    def note(self, text: str) -> None:
        """Show a message that stays."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None: ...

    def _changed(self, *, at_once: bool, is_other: bool) -> None:
        """Called with the lock whenever something was told.

        Args:
            at_once: it is to be shown now, and not when others are.
            is_other: it is another thing than before.
        """

    def _rates(self, now: float) -> dict[str, float | None]:
        """Return how fast the job is, and how long it will take."""
        return {"items_per_s": self._speed.items_per_s(now), "left_s": self._speed.left_s(now, self._progress)}
