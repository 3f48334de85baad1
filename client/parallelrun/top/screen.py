"""A snapshot as lines of a terminal. Pure but for the sizes that rich finds out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from parallelrun.models import Node
from parallelrun.progress.steps import describe_step, most_urgent
from parallelrun.progress.text import clean, counts, done_of, mini_batches, pace, rate, size, waiting_words
from parallelrun.top.snapshot import Snapshot
from parallelrun_core.answers.pictures import KindsOfErrors, Lane, Throughput, Timeline
from parallelrun_core.figures import clock

_BLOCKS: Final = " ▁▂▃▄▅▆▇█"
_MOST_ERRORS: Final = 5
_MOST_STEPS: Final = 20
_MOST_NODES: Final = 12
_MUCH_WAITING: Final = 0.2
_IDLE_PART: Final = 0.05
"""A worker that did something for less of a moment than this was idle."""
_FIXED_LINES: Final = 14
_STYLES: Final = {"completed": "green", "failed": "red", "canceled": "red"}
_ACTIVITIES: Final = (("run", "█", "green"), ("load", "▓", "cyan"), ("init", "▒", "yellow"))
"""By shape and color: what most of a moment was spent on."""


def screen(
    snapshot: Snapshot, *, lasted_s: float | None, items_per_s: float | None, left_s: float | None, height: int
) -> RenderableType:
    """Everything about a job, as far as there is room.

    Args:
        lasted_s: for how long the job has run; None: it hasn't begun.
        height: the lines of the terminal.
    """
    job = snapshot.job
    title = f"{clean(job.name or job.id)}  {job.id}  "
    head = Text(title, style="bold", no_wrap=True).append(job.state, _STYLES.get(job.state, "bold cyan"))
    if lasted_s is not None:
        head.append(f"  {clock(lasted_s)}", "dim")
    parts: list[RenderableType] = [head, *_progress(snapshot, items_per_s, left_s)]
    if words := waiting_words(job.waiting):
        parts.append(Text(words, style="yellow"))
    if snapshot.throughput.mini_batches:
        parts.append(_curve(snapshot.throughput))
    steps = [*_steps(snapshot)]
    parts += steps
    if snapshot.nodes:
        parts += [Text(), _nodes(snapshot.nodes)]
    listed = len(steps) + min(len(snapshot.nodes), _MOST_NODES) + min(len(snapshot.errors.items), _MOST_ERRORS)
    if snapshot.workers.lanes:
        parts += [Text(), _workers(snapshot.workers, max(height - _FIXED_LINES - listed, 3))]
    if snapshot.errors.items:
        parts += [Text(), _errors(snapshot.errors)]
    return Group(*parts)


def bars(values: Sequence[float]) -> str:
    """Numbers as a row of bars, the highest of which fills its line."""
    most = max(values, default=0)
    last = len(_BLOCKS) - 1
    # What is not nothing is seen.
    return "".join(_BLOCKS[max(round(value / most * last), 1) if value > 0 else 0] for value in values)


def strip(lane: Lane, bucket_s: float) -> Text:
    """Return what a worker did, a character for each moment."""
    text = Text()
    for index in range(len(lane.run)):
        seconds = {name: getattr(lane, name)[index] for name, _, _ in _ACTIVITIES}
        _, char, style = max(_ACTIVITIES, key=lambda each: seconds[each[0]])
        is_idle = sum(seconds.values()) < bucket_s * _IDLE_PART
        text.append("·" if is_idle else char, "dim" if is_idle else style)
    return text


def _progress(snapshot: Snapshot, items_per_s: float | None, left_s: float | None) -> Iterator[RenderableType]:
    job, progress = snapshot.job, snapshot.job.progress
    if job.is_pipeline or not progress.scheduled:
        return
    bar = Table.grid(padding=(0, 1))
    # While the total grows, a bar would go backwards, so it only moves.
    completed, total = done_of(progress) or (progress.decided, None)
    pulse = total is None and not job.has_ended
    bar.add_row(
        ProgressBar(total=total, completed=completed, width=40, pulse=pulse),
        Text(f"{mini_batches(progress)} mini-batches"),
    )
    yield bar
    words = [*counts(progress), *pace(progress, items_per_s=items_per_s, left_s=left_s)]
    yield Text(" · ".join(words), style="red" if progress.failed else "")


def _curve(throughput: Throughput) -> Text:
    per_s = max(throughput.items) / throughput.bucket_s if throughput.bucket_s and any(throughput.items) else None
    text = Text("items   ", "dim").append(bars(throughput.items), "green")
    return text.append(f"  at most {rate(per_s)}/s" if per_s is not None else "", "dim")


def _steps(snapshot: Snapshot) -> Iterator[RenderableType]:
    steps, others = most_urgent(snapshot.job.steps, _MOST_STEPS)
    for step in steps:
        yield Text(f"{clean(step.name)}: {describe_step(step)}", _STYLES.get(step.state, ""), no_wrap=True)
    if others:
        yield Text(others, "dim")


def _nodes(nodes: Sequence[Node]) -> Table:
    table = _columns("NODE", "STATE", "WORKERS", "MEMORY", "FREE DISK", "WAITED LAST MINUTE")
    for node in nodes[:_MOST_NODES]:
        memory = size(node.memory_bytes) if node.memory_bytes else ""
        style = "" if node.is_alive else "red"
        free = size(node.disk_free_bytes) if node.disk_free_bytes else ""
        table.add_row(
            clean(node.node), Text(node.state, style), f"{node.busy}/{node.slots}", memory, free, _waited(node)
        )
    if len(nodes) > _MOST_NODES:
        table.add_row(f"and {len(nodes) - _MOST_NODES:,} more")
    return table


def _waited(node: Node) -> Text:
    """For what something on the node has waited, as part of the last minute (PSI)."""
    if node.pressure is None:
        return Text()
    parts = {name: getattr(node.pressure, name) for name in ("cpu", "io", "memory")}
    style = "yellow" if max(parts.values()) > _MUCH_WAITING else "dim"
    return Text("  ".join(f"{name} {part:.0%}" for name, part in parts.items()), style)


def _workers(timeline: Timeline, room: int) -> Table:
    has_several = any(lane.now is not None and lane.now.in_flight > 1 for lane in timeline.lanes)
    table = _columns("NODE", "WORKER", *(["IN FLIGHT"] if has_several else []), "TRIES", "FAILED", "LAST MINUTE")
    for lane in timeline.lanes[:room]:
        failed = Text(f"{lane.failed_tries:,}", "red" if lane.failed_tries else "dim")
        in_flight = [f"{lane.now.in_flight:,}" if lane.now is not None else ""] if has_several else []
        cells: list[str | Text] = [*in_flight, f"{lane.tries:,}", failed, strip(lane, timeline.bucket_s)]
        table.add_row(clean(lane.node), clean(lane.process), *cells)
    if (others := timeline.lanes_total - min(room, len(timeline.lanes))) > 0:
        table.add_row(f"and {others:,} more")
    table.caption = Text.assemble(
        ("█", "green"), " run  ", ("▓", "cyan"), " load  ", ("▒", "yellow"), " init  ", ("·", "dim"), " idle"
    )
    table.caption_justify = "left"
    return table


def _errors(errors: KindsOfErrors) -> Table:
    table = _columns("TIMES", "ERROR")
    for kind in errors.items[:_MOST_ERRORS]:
        place = f"  ({clean(kind.place)})" if kind.place else ""
        words = f"{kind.category}: {clean(kind.message, most=300)}{place}"
        table.add_row(f"{kind.count:,}", Text(words, "red", no_wrap=True, overflow="ellipsis"))
    if (others := errors.count - sum(kind.count for kind in errors.items[:_MOST_ERRORS])) > 0:
        table.add_row(f"{others:,}", "of other kinds")
    return table


def _columns(*titles: str) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim", pad_edge=False)
    for title in titles:
        table.add_column(
            title, no_wrap=True, justify="right" if title in ("IN FLIGHT", "TRIES", "FAILED", "TIMES") else "left"
        )
    return table
