"""Displays of a job's progress: what each can do, and which one fits a stream."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, Self, TextIO

from parallelrun_core.wire.progress import Progress

if TYPE_CHECKING:
    from parallelrun_core.answers.jobs import PipelineStep
    from parallelrun_core.answers.waiting import Waiting


class Display(Protocol):
    """Shows one job. Use it in a `with` statement; its methods never raise."""

    def update(self, state: str, progress: Progress) -> None:
        """Show this from now on."""

    def waiting(self, waiting: Waiting | None) -> None:
        """Show what the job waits for from now on; None: nothing."""

    def steps(self, state: str, steps: Sequence[PipelineStep]) -> None:
        """Show these steps of a pipeline from now on."""

    def note(self, text: str) -> None:
        """Show a message that stays."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *exc: object) -> None: ...


class Silent:
    """Shows nothing."""

    def update(self, state: str, progress: Progress) -> None:
        """Nothing is shown."""

    def waiting(self, waiting: Waiting | None) -> None:
        """Nothing is shown."""

    def steps(self, state: str, steps: Sequence[PipelineStep]) -> None:
        """Nothing is shown."""

    def note(self, text: str) -> None:
        """Nothing is shown."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None: ...


def display_on(stream: TextIO, *, title: str) -> Display:
    """A live display when the stream is a terminal or this is a notebook, plain lines otherwise."""
    if stream.isatty() and os.environ.get("TERM") != "dumb":
        from parallelrun.progress.live import LiveDisplay

        return LiveDisplay(stream, title=title)
    if "IPython" in sys.modules:
        from parallelrun.progress.cell import NotebookDisplay, is_in_notebook

        if is_in_notebook():
            return NotebookDisplay(title=title)
    from parallelrun.progress.plain import PlainDisplay

    return PlainDisplay(stream)
