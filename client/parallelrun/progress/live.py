"""Progress on a terminal: a bar and the counts, redrawn several times a second."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from typing import IO, TYPE_CHECKING, Any, Final, Self, TextIO, cast

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from parallelrun.progress.display import Display
from parallelrun.progress.steps import describe_running, describe_step, most_urgent
from parallelrun.progress.text import (
    clean,
    counts,
    describe,
    done_of,
    mini_batches,
    pace,
    waiting_words,
)
from parallelrun_core.figures import clock
from parallelrun_core.wire.progress import Progress

if TYPE_CHECKING:
    from parallelrun_core.answers.jobs import PipelineStep

_MOST_STEPS: Final = 20
_STYLES: Final = {"failed": "red", "canceled": "red", "waiting": "dim", "skipped": "dim"}
_REDRAWN_PER_S: Final = 4


class LiveDisplay(Display):
    """Draws on a terminal. Its clock keeps running, so a stalled job does not look like a stalled display."""

    def __init__(self, stream: TextIO, *, title: str) -> None:
        super().__init__()
        self._console = Console(file=cast(IO[str], _ClosableStream(stream)), highlight=False, markup=False, emoji=False)
        self._title = clean(title)
        self._began = time.monotonic()
        self._live = Live(
            get_renderable=self._draw,
            console=self._console,
            refresh_per_second=_REDRAWN_PER_S,
            redirect_stdout=False,
            redirect_stderr=False,
            transient=True,
        )

    def note(self, text: str) -> None:
        """Show a message that stays, above the bar."""
        self._live.console.print(Text(clean(text, lines=True)))

    def __enter__(self) -> Self:
        self._live.start(refresh=True)
        return self

    def __exit__(self, *exc: object) -> None:
        self._live.stop()

    def _draw(self) -> RenderableType:
        now = time.monotonic()
        with self._lock:
            state, progress, steps = self._state, self._progress, self._steps
            words, rates = waiting_words(self._waiting), self._rates(now)
        head = Text(f"{self._title}  {state}  {clock(now - self._began)}", no_wrap=True, overflow="ellipsis")
        if steps:
            return Group(head, _table(steps))
        if words:
            return Group(head, Text(words, style="yellow"))
        if state == "finalizing" or not progress.scheduled:
            return Group(head, Text(describe(state, progress, items_per_s=None, left_s=None)))
        bar = Table.grid(padding=(0, 1))
        bar.add_row(_bar(progress), Text(f"{mini_batches(progress)} mini-batches"))
        parts = [*counts(progress), *pace(progress, **rates)]
        return Group(head, bar, Text(" · ".join(parts), style="red" if progress.failed else ""))


class _ClosableStream:
    """A terminal that may be closed while the job continues."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        with suppress(OSError, ValueError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with suppress(OSError, ValueError):
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _table(steps: Sequence[PipelineStep]) -> Table:
    """A line for each step, as far as there is room."""
    listed_steps, others = most_urgent(steps, _MOST_STEPS)
    table = Table.grid(padding=(0, 2))
    for step in listed_steps:
        words = describe_running(step).removeprefix(step.name).strip() if step.state == "running" else ""
        text = Text(words or describe_step(step), no_wrap=True, overflow="ellipsis", style=_STYLES.get(step.state, ""))
        is_counted = step.state == "running" and step.type == "parallel" and step.progress is not None
        if is_counted and step.progress is not None and step.progress.scheduled:
            bar = Table.grid(padding=(0, 1))
            bar.add_row(_bar(step.progress), text)
            table.add_row(Text(clean(step.name)), bar)
        else:
            table.add_row(Text(clean(step.name)), text)
    if others:
        table.add_row(Text("…"), Text(others))
    return table


def _bar(progress: Progress) -> ProgressBar:
    # While the total grows, a bar would go backwards, so it only moves.
    done_share = done_of(progress)
    if done_share is None:
        return ProgressBar(total=None, width=40, pulse=True)
    return ProgressBar(total=done_share[1], completed=done_share[0], width=40)
