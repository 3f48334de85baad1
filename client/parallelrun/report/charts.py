"""Charts as SVG without scripts: shapes that stretch to any width; their words are HTML around them.

What a color says, a shape or a word says, too. Hovering over a cell shows its numbers, which tables repeat.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from parallelrun.progress.markup import Markup, element, joined
from parallelrun_core.answers.pictures import Lane, Tiles, Timeline
from parallelrun_core.figures import duration

_WIDTH: Final = 1000
_COLUMNS: Final = 60
_FEWEST_COLUMNS: Final = 30
_ROW: Final = 20
_LANE: Final = 18
_HEATS: Final = 6
_ACTIVITIES: Final = ("run", "load", "init")


def area(values: Sequence[float], *, height: int, kind: str, most: float | None = None) -> Markup:
    """Values over time as a filled curve of steps."""
    top = most if most is not None else max(values, default=0)
    points = []
    width = _WIDTH / max(len(values), 1)
    for index, value in enumerate(values):
        y = height - (min(value / top, 1) * (height - 2) if top else 0)
        points.append(f"L{_short(index * width)} {_short(y)}H{_short((index + 1) * width)}")
    path = f"M0 {height}{''.join(points)}V{height}Z"
    return _svg(_WIDTH, height, element("path", d=path, class_=f"area {kind}"), css=f"height:{height}px")


def ticks(failed: Sequence[int], retried: Sequence[int]) -> Markup | None:
    """Return when something failed: a mark for each moment, tall and red for good, short and yellow for another try."""
    width = _WIDTH / max(len(failed), 1)
    marks = []
    for index, (bad, again) in enumerate(zip(failed, retried, strict=True)):
        if bad or again:
            height, kind = (12, "failed") if bad else (6, "retried")
            marks.append(f"{kind} {_short(index * width)} {12 - height} {_short(max(width * 0.7, 2))} {height}")
    if not marks:
        return None
    shapes = []
    for mark in marks:
        kind, x, y, wide, high = mark.split()
        shapes.append(element("rect", x=x, y=y, width=wide, height=high, class_=kind))
    return _svg(_WIDTH, 12, shapes, css="height:12px")


def heat_map(tiles: Tiles) -> Markup:
    """A cell for each bucket of mini-batches: the warmer, the longer; what failed, runs or waits has its own look."""
    cells = len(tiles.completed)
    columns = min(_COLUMNS, max(cells, _FEWEST_COLUMNS))
    limits = _limits([value for value in tiles.median_run_s if value is not None])
    rows = -(-cells // columns)
    shapes = [_cell(tiles, index, columns, limits) for index in range(cells)]
    return _svg(columns, rows, shapes, css=f"height:{rows * _ROW}px", name="Mini-batches by number")


def _cell(tiles: Tiles, index: int, columns: int, limits: Sequence[float]) -> Markup:
    y, x = divmod(index, columns)
    first = tiles.first + index * tiles.bucket_size
    last = min(first + tiles.bucket_size, tiles.end) - 1
    median, longest = tiles.median_run_s[index], tiles.max_run_s[index]
    counts = {name: getattr(tiles, name)[index] for name in ("completed", "failed", "running", "waiting", "retried")}
    words = [f"{count:,} {name}" for name, count in counts.items() if count]
    if median is not None and longest is not None:
        words.append(f"median {seconds(median)}, longest {seconds(longest)}")
    heat = sum(median > limit for limit in limits) if median is not None else 0
    kind = f"h{heat}" if counts["completed"] else "failed" if counts["failed"] else "waiting"
    if counts["running"] and not counts["completed"]:
        kind = "running"
    shapes = [element("rect", x=x + 0.06, y=y + 0.06, width=0.88, height=0.88, class_=kind)]
    if counts["failed"]:
        corner = f"M{x + 0.94:.2f} {y + 0.06:.2f}v.6l-.6-.6z"
        shapes.append(element("path", d=corner, class_="failed edged"))
    subject = f"mini-batch {first:,}" if first == last else f"mini-batches {first:,} to {last:,}"
    title = f"{subject}: {', '.join(words) or 'nothing yet'}"
    return element("g", element("title", title), shapes)


def heats(tiles: Tiles) -> list[tuple[str, str]]:
    """The legend of the heat map: classes and words."""
    medians = [value for value in tiles.median_run_s if value is not None]
    limits = _limits(medians)
    if not medians:
        return []
    if not limits:
        return [("h0", f"about {seconds(medians[0])}")]
    return [
        ("h0", f"up to {seconds(limits[0])}"),
        *((f"h{index + 1}", f"over {seconds(limit)}") for index, limit in enumerate(limits)),
    ]


def _limits(values: Sequence[float]) -> list[float]:
    """Return where colors change: steps that are equal as factors, since durations differ by factors."""
    low, high = min(values, default=0), max(values, default=0)
    low = max(low, high / 1000, 1e-4)
    if high < low * 1.5:
        return []
    factor = (high / low) ** (1 / _HEATS)
    return [low * factor**step for step in range(1, _HEATS)]


def lanes(timeline: Timeline) -> Markup:
    """A lane for each worker: running, loading and init as parts of each moment's height."""
    shapes = [
        element("path", d=path, class_=kind)
        for number, lane in enumerate(timeline.lanes)
        for kind, path in _paths(lane, number * _LANE, timeline.bucket_s)
    ]
    count = len(timeline.lanes[0].run) if timeline.lanes else 1
    height = len(timeline.lanes) * _LANE
    return _svg(count, height, shapes, css=f"height:{height}px", name="Workers over time")


def _paths(lane: Lane, top: int, bucket_s: float) -> Iterator[tuple[str, str]]:
    """For each activity, the path of its pieces; neighbors of the same height are one."""
    full = _LANE - 4
    below = [0.0] * len(lane.run)
    for kind in _ACTIVITIES:
        pieces: list[list[float]] = []
        for index, value in enumerate(getattr(lane, kind)):
            share = round(min(value / bucket_s if bucket_s else 0, 1 - below[index]), 2)
            if share < 0.02:
                continue
            y, high = top + 2 + full * (1 - below[index] - share), full * share
            below[index] += share
            if pieces and pieces[-1][0] + pieces[-1][1] == index and pieces[-1][2:] == [y, high]:
                pieces[-1][1] += 1
            else:
                pieces.append([index, 1, y, high])
        if pieces:
            yield (
                kind,
                "".join(f"M{x:.0f} {_short(y)}h{wide:.0f}v{_short(high)}h-{wide:.0f}z" for x, wide, y, high in pieces),
            )


def _svg(width: float, height: float, *shapes: object, css: str, name: str = "") -> Markup:
    return element(
        "svg",
        joined(shapes),  # type: ignore[arg-type]
        viewBox=f"0 0 {width} {height}",
        preserveAspectRatio="none",
        style=css,
        role="img",
        aria_label=name or None,
        aria_hidden=None if name else "true",
    )


def _short(value: float) -> str:
    return f"{value:.1f}".rstrip("0").rstrip(".")


def seconds(value: float | None) -> str:
    """A measured time; empty if it isn't known."""
    return "" if value is None else duration(value)


def share(value: float | None) -> str:
    """A part of a whole in percent; empty if it isn't known."""
    if value is None:
        return ""
    if 0 < value < 0.0005:
        return "< 0.1 %"
    return f"{100 * value:.0f} %" if value >= 0.1 or not value else f"{100 * value:.1f} %"


def per_second(value: float | None) -> str:
    """Three digits at most; empty if it isn't known."""
    return "" if value is None else f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
