"""The end of a job in one sentence: the same for command line, web page, REST and the reports in its logs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

from parallelrun_core.figures import counted
from parallelrun_core.wire.error_kinds import in_words
from parallelrun_core.wire.progress import Progress

_ALMOST_ALL: Final = 99.5


class Cause(Protocol):
    """An error that has cost items; `ErrorCount` in `failure.py` says what each field is."""

    @property
    def category(self) -> str: ...
    @property
    def exception(self) -> str: ...
    @property
    def place(self) -> str: ...


def what_failed(progress: Progress, causes: Sequence[Cause] = ()) -> str:
    """Return what has failed, of how many, and why; empty if nothing has raised, timed out or died.

    Items for which run() only returned no row have not failed in words: the script may make one row of many items.

    Args:
        causes: the costliest first.
    """
    lost = progress.items_lost
    if not lost and not progress.failed:
        return ""
    why = f": {words_of(causes[0])}{_more(causes)}" if causes else ""
    if not lost:
        return f"{progress.failed:,} of {progress.decided:,} mini-batches failed{why}"
    total = max(progress.items_found, progress.items_decided)
    details = [f"{_percent(lost, total)} %"]
    about = "about " if progress.items_estimated else ""
    if progress.items_estimated:
        details.append(f"{progress.items_estimated:,} of them estimated: their data could not be read")
    return f"{about}{lost:,} of {about}{total:,} items failed ({', '.join(details)}){why}"


def what_is_short(progress: Progress) -> str:
    """Return how many rows a job has made of its items, if these are fewer and nothing was raised; else empty."""
    if not progress.items_short:
        return ""
    rows = "1 row" if progress.rows == 1 else f"{progress.rows:,} rows"
    return f"made {rows} of {counted(progress.items_done + progress.items_short, 'item')}"


def how_completed(progress: Progress, causes: Sequence[Cause] = ()) -> str:
    """Return what follows `completed` in the sentence about a job that has completed; empty if all went well."""
    failed, short = what_failed(progress, causes), what_is_short(progress)
    but = f", but {failed}" if failed else ""
    return f"{but}{'; it ' if failed else ', '}{short}" if short else but


def words_of(cause: Cause) -> str:
    """Return what has gone wrong, in a few words: `ValueError in score.py:17`."""
    return in_words(cause.category, cause.exception, cause.place)


def _more(causes: Sequence[Cause]) -> str:
    others = len(causes) - 1
    return f", and {others} more kind{'s' if others > 1 else ''} of error" if others > 0 else ""


def _percent(part: int, total: int) -> str:
    """A share without more digits than anybody reads: never 0 of some, never 100 of not all."""
    percent = 100 * part / max(total, 1)
    if _ALMOST_ALL <= percent < 100:
        return "more than 99"
    return f"{percent:.0f}" if percent >= 10 else f"{percent:.2g}"
