"""`parallelrun job advise`: what would make a job faster, and what other settings would give."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Final

import typer

from parallelrun.cli.job_files import JobId
from parallelrun.cli.output import FormatOption, OutputFormat, show, table
from parallelrun.cli.server import Client

if TYPE_CHECKING:
    from parallelrun_core.adviser.advice import Advice, AdviceCurve, CurvePoint

_DURATION: Final = re.compile(r"(\d+(?:\.\d+)?) ?(s|m|min|h|)")
_UNITS: Final = {"": 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
_MIN_SAVING: Final = "60s"
_BAR: Final = 40
_ROWS: Final = 16
"""Of a table that one reads at a glance."""


def seconds_of(text: str) -> float:
    """A time such as `90`, `2s`, `30m` or `1.5h` in seconds."""
    match = _DURATION.fullmatch(text.strip())
    if match is None:
        raise typer.BadParameter(f"{text!r} is not a time such as 90s, 30m or 1.5h")
    return float(match[1]) * _UNITS[match[2]]


def advise(
    client: Client,
    job_id: JobId,
    *,
    what_if: Annotated[
        str,
        typer.Option(
            metavar="SETTING=VALUES",
            help="What other settings would give: nodes=1..64, processes=2,4,8 or mini_batch_size=10..1000.",
            show_default=False,
        ),
    ] = "",
    price: Annotated[
        float | None, typer.Option(min=0, help="Of a node for an hour, for --what-if.", show_default=False)
    ] = None,
    min_saving: Annotated[
        str, typer.Option(metavar="TIME", help="Leave out what saves less: 60s, 5m.", show_default=_MIN_SAVING)
    ] = "",
    form: FormatOption = OutputFormat.TABLE,
) -> None:
    """Say what would make a job faster, cheaper or safer. Says exactly what to change; also while it runs."""
    least_s = seconds_of(min_saving or _MIN_SAVING)
    if what_if:
        if min_saving:
            raise typer.BadParameter("it is about findings, and --what-if has none", param_hint="--min-saving")
        curve = client.jobs.what_if(job_id, what_if, price=price)
        values = (str(point.value) for point in curve.points)
        show(curve, form, names=values, lines=lines_of_curve(curve, is_range=".." in what_if))
    else:
        if price is not None:
            raise typer.BadParameter("it is for --what-if, such as --what-if nodes=1..64", param_hint="--price")
        advice = client.jobs.advice(job_id, min_saving_s=least_s)
        show(advice, form, names=(each.id for each in advice.findings), lines=_lines_of_advice(advice))


def _lines_of_advice(advice: Advice) -> Iterator[str]:
    from parallelrun_core.adviser.words import lines_of

    yield from (advice.summary, *([""] if advice.findings else []), *lines_of(advice))
    if not advice.findings and advice.basis is not None and advice.min_saving_s > 1:
        yield "--min-saving 1s tells of smaller savings, too: of a job that was only tried out, perhaps."


def some_of(points: Sequence[CurvePoint], now: int) -> Sequence[CurvePoint]:
    """Return as many points as one reads at a glance: the first, the last, the present one, and between them ever
    larger steps, as twice as many of anything tell about as much wherever they begin."""
    if len(points) <= _ROWS:
        return points
    first, last = points[0].value, points[-1].value
    targets = [first * (last / first) ** (step / (_ROWS - 2)) for step in range(_ROWS - 1)]
    nearest = {min(points, key=lambda point: abs(point.value - value)).value for value in targets}
    return [point for point in points if point.value in nearest or point.value == now]


def lines_of_curve(curve: AdviceCurve, *, is_range: bool) -> Iterator[str]:
    from parallelrun_core.figures import duration

    longest = max(point.seconds for point in curve.points) or 1.0
    has_cost = any(point.cost is not None for point in curve.points)

    def row(point: CurvePoint) -> list[str]:
        cost = [f"{point.cost:.2f}"] if point.cost is not None else []
        bar = "#" * max(1, round(_BAR * point.seconds / longest))
        mark = " now" if point.value == curve.now else ""
        return [f"{point.value:,}", duration(point.seconds), f"{point.node_hours:.3g}", *cost, bar + mark]

    titles = [curve.setting.upper(), "TIME", "NODE HOURS", *(["COST"] if has_cost else []), ""]
    points = some_of(curve.points, curve.now) if is_range else curve.points
    yield from table(titles, [row(point) for point in points])
    if len(points) < len(curve.points):
        yield f"{len(points)} of {len(curve.points)} values; with -o json, all of them."
    yield from curve.notes
