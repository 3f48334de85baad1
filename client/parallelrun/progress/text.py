"""Words and numbers for people. Pure functions."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Final

from parallelrun_core.figures import about, counted

if TYPE_CHECKING:
    from parallelrun_core.answers.jobs import Job, PipelineStep
    from parallelrun_core.answers.waiting import Waiting
    from parallelrun_core.wire.progress import Progress

MAY_WAIT: Final = frozenset({"queued", "processing"})
"""States of a job that may wait for something."""
_UNITS: Final = ("B", "kB", "MB", "GB", "TB")


def clean(text: str, *, lines: bool = False, most: int = 2000) -> str:
    """Text of unknown origin, made safe for a terminal: nothing in it moves the cursor or changes colors or direction.

    Args:
        lines: keep line breaks; otherwise everything is in one line.
        most: cut off after this many characters.
    """
    from parallelrun_core.untrusted.sanitize import visible  # here, so that help is printed without it

    if len(text) > most:
        text = text[:most] + "…"
    text = text.replace("\r\n", "\n").replace("\t", "    ")
    if not lines:
        text = " ".join(text.split("\n"))
    return visible(text)


def done_of(progress: Progress) -> tuple[int, int] | None:
    """Return how much is decided, and of how much: of mini-batches, or of items if only their total is known yet; None
    while no total is."""
    if progress.listing_done:
        return progress.decided, progress.scheduled
    if progress.all_found:
        return progress.items_decided, progress.items_found
    return None


def describe(state: str, progress: Progress, *, items_per_s: float | None, left_s: float | None) -> str:
    """The progress of a job in one line."""
    if state == "finalizing":
        if not progress.bytes_to_concatenate:
            return state
        return f"{state}: {size(progress.bytes_concatenated)} of {size(progress.bytes_to_concatenate)} written"
    if not progress.scheduled:
        shuffled = f"shuffling: {size(progress.bytes_shuffled)} of {size(progress.bytes_to_shuffle)}"
        parts = [shuffled] if progress.bytes_to_shuffle else []
        parts += [waiting] if (waiting := provisioning(progress)) else []
        return f"{state}: {', '.join(parts)}" if parts else state
    words = [f"{state}: {mini_batches(progress)} mini-batches", *counts(progress)]
    return ", ".join(words) + "; " + ", ".join(pace(progress, items_per_s=items_per_s, left_s=left_s))


def standing(job: Job) -> str:
    """Return the state of a job with waiting and starting told apart from working, as the page calls it."""
    name = job.pace.standing if job.pace is not None else ""
    return name.replace("_", " ") if name in ("waiting_for_workers", "starting", "paused") else job.state


def waiting_words(waiting: Waiting | None) -> str:
    """Return what a job waits for, with what to do; empty: nothing."""
    if waiting is None:
        return ""
    words = f"{waiting.text}: {waiting.advice}" if waiting.advice else waiting.text
    return clean(words, most=500)


def mini_batches(progress: Progress) -> str:
    """`done/total`, with a `+` while the total still grows."""
    return f"{progress.decided:,}/{progress.scheduled:,}{'' if progress.listing_done else '+'}"


def counts(progress: Progress) -> list[str]:
    """The counts of mini-batches that are not simply done."""
    words = [f"{progress.running:,} running", f"{progress.failed:,} failed", f"{progress.retried:,} retried"]
    words += [f"{progress.lost:,} lost"] if progress.lost else []
    if progress.preparing:
        nodes = "1 node" if progress.preparing == 1 else f"{progress.preparing:,} nodes"
        words.insert(0, f"preparing workers on {nodes}")
    if waiting := provisioning(progress):
        words.insert(0, waiting)
    if waits := progress.waits_text():
        words.append(clean(waits))
    if cost := progress.cost_text():
        words.append(cost)
    return [f"{progress.resumed:,} taken over", *words] if progress.resumed else words


def provisioning(progress: Progress) -> str:
    """Return which nodes a job on a compute waits for; empty: none."""
    if progress.nodes >= progress.nodes_wanted:
        return ""
    why = f": {clean(progress.nodes_why, most=200)}" if progress.nodes_why else ""
    return f"provisioning nodes ({progress.nodes:,} of {progress.nodes_wanted:,}{why})"


def pace(progress: Progress, *, items_per_s: float | None, left_s: float | None) -> list[str]:
    """Return how many items, how fast, and how long it will still take, as far as that is known."""
    items = progress.items_decided
    total = f"/{progress.items_found:,}{'' if progress.knows_items else '+'}"
    if not progress.items_ahead and items == progress.items_scheduled and progress.decided < progress.scheduled:
        total = ""  # a table, whose rows are known once they are read
    words = [f"{items:,}{total} items" if total else counted(items, "item")]
    if progress.items_lost:
        words.append(f"{counted(progress.items_lost, 'item')} failed")
    if items_per_s is not None:
        words.append(f"{rate(items_per_s)} items/s")
    if left_s is not None:
        words.append(f"about {about(left_s)} left")
    return words


def chosen_size(progress: Progress) -> str:
    """Return how large mini-batches are, and why, of a job that chooses that itself; empty: it doesn't."""
    if not progress.chosen_size:
        return ""
    items = "1 item" if progress.chosen_size == 1 else f"{progress.chosen_size:,} items"
    return f"auto: {items}; {clean(progress.chosen_why, most=200)}"


def rate(per_s: float) -> str:
    """Two or three significant digits."""
    return f"{per_s:,.0f}" if per_s >= 10 else f"{per_s:.2g}"


def size(count: float) -> str:
    """Bytes in the unit that fits."""
    for unit in _UNITS:
        if count < 1000 or unit == _UNITS[-1]:
            return f"{count:,.0f} {unit}" if unit == "B" else f"{count:,.1f} {unit}"
        count /= 1000
    raise AssertionError("unreachable")


def took(timed: Job | PipelineStep) -> str:
    """Return how long it took, as in ` in 7.0 s`; empty if that isn't known."""
    if not timed.started or not timed.ended:
        return ""
    took_s = (datetime.fromisoformat(timed.ended) - datetime.fromisoformat(timed.started)).total_seconds()
    return f" in {took_s:.1f} s" if took_s < 10 else f" in {about(took_s)}"
