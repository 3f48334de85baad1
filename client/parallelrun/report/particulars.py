"""The lower part of a report: the job in time, by mini-batch, by worker, by error, by node and by setting."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from itertools import groupby

from parallelrun.progress.markup import Child, Markup, element
from parallelrun.report import charts
from parallelrun.report.charts import per_second, seconds
from parallelrun.report.facts import Facts, NodeUsageSeries
from parallelrun.report.overview import card, table
from parallelrun_core.answers.pictures import EffectiveSetting, KindOfError

_MOST_KINDS = 20
_MOST_TEXT = 4000
_MOST_VALUE = 1000
_MOST_SETTINGS = 150
_ROWS_OF_TABLE = 20
_ACTIVITIES = (("run", "running"), ("load", "loading"), ("init", "init()"))


def throughput(facts: Facts) -> Markup | None:
    rates = facts.throughput
    if not rates.mini_batches or not rates.bucket_s:
        return None
    is_items = any(rates.items)
    counted = rates.items if is_items else rates.mini_batches
    per_s = [count / rates.bucket_s for count in counted]
    ticks = charts.ticks(rates.failed, rates.retried)
    noun = "Items" if is_items else "Mini-batches"
    length_s = rates.bucket_s * len(counted)
    return card(
        "Throughput",
        element("h3", f"{noun} per second, at most {per_second(max(per_s))}"),
        element("div", charts.area(per_s, height=120, kind="items"), class_="plot"),
        [element("h3", "When tries failed"), ticks] if ticks else None,
        element("h3", f"Busy workers, at most {max(rates.busy_workers, default=0):.3g}"),
        element("div", charts.area(rates.busy_workers, height=48, kind="busy"), class_="plot"),
        _scale(length_s),
        _legend([("failed", "failed for good"), ("retried", "failed, tried again")]) if ticks else None,
        _twin(
            ("From", f"{noun} per second", "Failed", "Retried", "Busy workers"),
            [
                [seconds(at * rates.bucket_s), per_second(max(per_s[at : at + step])),
                 f"{sum(rates.failed[at : at + step]):,}", f"{sum(rates.retried[at : at + step]):,}",
                 f"{max(rates.busy_workers[at : at + step], default=0):.1f}"]
                for step in [max(1, -(-len(per_s) // _ROWS_OF_TABLE))]
                for at in range(0, len(per_s), step)
            ],
        ),
    )  # fmt: skip


def heat_map(facts: Facts) -> Markup | None:
    """All mini-batches by number."""
    tiles = facts.tiles
    if not tiles.completed:
        return None
    size = tiles.bucket_size
    each = "a mini-batch" if size == 1 else f"{size:,} mini-batches"
    kinds = [
        (look, state)
        for look, state in (("failed corner", "failed"), ("running", "running"), ("waiting", "waiting"))
        if any(getattr(tiles, state))
    ]
    return card(
        "Mini-batches",
        element("p", f"By number; each cell is {each}, colored by how long they took (median).", class_="muted small"),
        charts.heat_map(tiles),
        _legend([*charts.heats(tiles), *kinds]),
    )


def timeline(facts: Facts) -> Markup | None:
    lanes_in_time = facts.timeline
    if not lanes_in_time.lanes:
        return None
    names = [
        element("div", f"{lane.node} {lane.process.removeprefix('process')}", title=f"{lane.node} {lane.process}")
        for lane in lanes_in_time.lanes
    ]
    rows = [
        [f"{lane.node} {lane.process}", f"{lane.tries:,}", f"{lane.failed_tries:,}", seconds(sum(lane.init)),
         seconds(sum(lane.load)), seconds(sum(lane.run)),
         seconds(max(lane.end_s - lane.begin_s - sum(lane.init) - sum(lane.load) - sum(lane.run), 0.0))]
        for lane in lanes_in_time.lanes
    ]  # fmt: skip
    others = lanes_in_time.lanes_total - len(lanes_in_time.lanes)
    return card(
        "Workers",
        element("p", "Each in time. What is empty, it was idle or not there.", class_="muted small"),
        element(
            "div",
            element("div", names, class_="names"),
            element(
                "div",
                element("div", charts.lanes(lanes_in_time), class_="bed"),
                _scale(lanes_in_time.end_s - lanes_in_time.begin_s),
            ),
            class_="workers",
        ),
        element("p", f"and {others:,} more workers", class_="muted small") if others > 0 else None,
        _legend(_ACTIVITIES),
        _twin(("Worker", "Tries", "Failed", "init()", "Loading", "Running", "Idle"), rows),
        kind="long",
    )


def errors(facts: Facts) -> Markup | None:
    kinds = facts.errors
    if not kinds.items:
        return None
    listed_kinds = kinds.items[:_MOST_KINDS]
    others = kinds.count - sum(kind.count for kind in listed_kinds)
    return card(
        "Errors",
        element("p", "Tries that failed in the same way, the most frequent way first.", class_="muted small"),
        map(_kind, listed_kinds),
        element("p", f"and {others:,} of other kinds", class_="muted small") if others > 0 else None,
        kind="long",
    )


def _kind(each: KindOfError) -> Markup:
    where = ", ".join(f"{number:,}" for number in each.mini_batches)
    return element(
        "div",
        element(
            "p",
            element("span", "once" if each.count == 1 else f"{each.count:,} times", class_="count"),
            " ",
            element("span", each.category, class_="badge failed"),
            " ",
            element("b", each.message[:_MOST_TEXT]),
        ),
        element("p", element("code", each.place), class_="muted small") if each.place else None,
        element(
            "p",
            f"Mini-batches {where} · first on {each.node} {each.process}",
            [" · log ", element("code", each.log)] if each.log else None,
            class_="muted small",
        ),
        element("details", element("summary", "Traceback"), element("pre", each.traceback.strip("\n")[:_MOST_TEXT]))
        if each.traceback
        else None,
        class_="group",
    )


def slowest(facts: Facts) -> Markup | None:
    """The tries that took longest, where some took much longer than others."""
    tries = [each for each in facts.timeline.slowest if (each.times_median or 0.0) >= 1.5][:10]
    if not tries:
        return None
    rows = [
        [f"{each.mini_batch:,}", seconds(each.run_s), f"{each.times_median:,.1f}", f"{each.node} {each.process}",
         seconds(each.begin_s)]
        for each in tries
    ]  # fmt: skip
    titles = ("Mini-batch", "run()", "Times the median", "Worker", "Began after")
    return card("Slowest tries", table(titles, [_row(cells) for cells in rows]))


def usage(facts: Facts) -> Markup | None:
    if not facts.usage:
        return None
    return card("Nodes", element("div", map(_node, facts.usage), class_="nodes"))


def _node(each: NodeUsageSeries) -> Markup:
    return element(
        "div",
        element("b", each.node),
        element("h3", f"CPU, at most {max(each.cpu):.0f} %"),
        element("div", charts.area(each.cpu, height=36, kind="cpu", most=100.0), class_="plot"),
        element("h3", f"Memory, at most {max(each.memory):.0f} %"),
        element("div", charts.area(each.memory, height=36, kind="memory", most=100.0), class_="plot"),
        element("div", element("span", _time(each.begin)), element("span", _time(each.end)), class_="scale"),
    )


def settings(facts: Facts) -> Markup | None:
    """Return what the job was told to do, and what it did by itself."""
    items = facts.settings.items[:_MOST_SETTINGS]
    if not items:
        return None
    changed_settings = [each for each in items if each.origin != "default"]
    others = [each for each in items if each.origin == "default"]
    titles = ("Setting", "Value", "From")
    return card(
        "Settings",
        table(titles, [_setting(each) for each in changed_settings]),
        element("details", element("summary", f"{len(others)} by default"), list(_by_group(others)))
        if others
        else None,
        kind="long",
    )


def _by_group(items: list[EffectiveSetting]) -> Iterator[Markup]:
    for group, members in groupby(sorted(items, key=lambda each: each.group), key=lambda each: each.group):
        yield element("h3", group)
        yield table(("Setting", "Value", "Meaning"), [
            element("tr", element("td", element("code", each.name)), element("td", _value(each.value)),
                    element("td", each.description, class_="muted small"))
            for each in members
        ])  # fmt: skip


def _setting(each: EffectiveSetting) -> Markup:
    origin = {"given": f"given: {each.given_at}" if each.given_at else "given", "unknown": "not known"}
    default = (
        f", instead of {_plain(each.default)}" if each.origin == "given" and each.default not in (None, "") else ""
    )
    return element(
        "tr",
        element("td", element("code", each.name), title=each.description),
        element("td", _value(each.value)),
        element("td", f"{origin.get(each.origin, each.origin)}{default}", class_="muted small"),
    )


def _value(value: object) -> Markup:
    return element("code", _plain(value))


def _plain(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return f"{text[:_MOST_VALUE]}…" if len(text) > _MOST_VALUE else text


def _legend(entries: object) -> Markup:
    return element(
        "ul",
        [element("li", element("i", class_=f"key {kind}"), words) for kind, words in entries],  # type: ignore[attr-defined]
        class_="legend",
    )


def _scale(length_s: float) -> Markup:
    marks: list[Child] = [element("span", seconds(length_s * part / 4)) for part in range(5)]
    return element("div", marks, class_="scale five")


def _twin(titles: tuple[str, ...], rows: list[list[str]]) -> Markup:
    """A chart's numbers, for those who can't see it."""
    return element("details", element("summary", "As a table"), table(titles, [_row(cells) for cells in rows]))


def _row(cells: list[str]) -> Markup:
    first, *others = cells
    return element("tr", element("td", first), [element("td", cell) for cell in others], class_="short")


def _time(text: str) -> str:
    try:
        return f"{datetime.fromisoformat(text):%H:%M:%S}"
    except ValueError:
        return text
