"""Data on stdout: as a table for people, or as JSON, YAML or bare names for programs."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from enum import StrEnum
from operator import attrgetter
from typing import Annotated, Any

import msgspec
import typer

from parallelrun.progress.text import clean


class OutputFormat(StrEnum):
    """The form in which data is printed."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"
    NAME = "name"


FormatOption = Annotated[OutputFormat, typer.Option("--output", "-o", help="The form of the output.")]
Column = str | tuple[str, Callable[[Any], object]]
"""A column of a table: the name of a field, or a title and what makes the content."""

LimitOption = Annotated[int | None, typer.Option(min=1, help="The maximum number.", show_default="all")]


def show(data: object, form: OutputFormat, *, lines: Iterable[str], names: Iterable[str] | None = None) -> None:
    """Print something in the form that is asked for.

    Args:
        data: for programs, plain or in structs.
        lines: for people.
        names: what it is called, line by line; None: as for people.
    """
    if form in (OutputFormat.JSON, OutputFormat.YAML):
        dump(data, form)
        return
    for line in lines if names is None or form is OutputFormat.TABLE else names:
        print(line)
    sys.stdout.flush()


def show_list(
    rows: Iterable[msgspec.Struct],
    form: OutputFormat,
    *,
    columns: Sequence[Column],
    name: Callable[[Any], str] = attrgetter("name"),
) -> None:
    """Print several objects: names and tables line by line, the other forms as one list."""
    from parallelrun_core.untrusted.sanitize import visible

    pairs = [(each.replace("_", " ").upper(), attrgetter(each)) if isinstance(each, str) else each for each in columns]
    titles, getters = zip(*pairs, strict=True)
    names = (visible(name(row), lines=False) for row in rows)
    if form is not OutputFormat.NAME:
        rows = list(rows)
    cells = (["" if (value := get(row)) is None else str(value) for get in getters] for row in rows)
    show(rows, form, names=names, lines=table(titles, cells))


def show_csv(titles: Sequence[str], rows: Iterable[Sequence[object]], form: OutputFormat) -> None:
    """Print rows as CSV, a line for each. Raises typer.BadParameter if another form is asked for, too."""
    from parallelrun_core.untrusted.sanitize import csv_cell

    if form is not OutputFormat.TABLE:
        raise typer.BadParameter("--csv is a form, too: leave one of them out", param_hint="--output")
    print(",".join(titles))
    for row in rows:
        print(",".join(csv_cell(each) if isinstance(each, str) else "" if each is None else str(each) for each in row))


def show_one(thing: msgspec.Struct, form: OutputFormat, *, name: str, lines: Sequence[tuple[str, object]]) -> None:
    """Print one object; as a table, that is a line for each of its fields."""
    width = max(len(title) for title, _ in lines) + 1

    def shown(value: object) -> str:
        return clean(str(value), lines=True, most=100_000).replace("\n", "\n" + " " * (width + 1))

    texts = (f"{title + ':':<{width}} {shown(value)}" for title, value in lines if value not in (None, ""))
    show(thing, form, names=(name,), lines=texts)


def show_change(thing: msgspec.Struct, form: OutputFormat, *, name: str, text: str = "") -> None:
    """Print what a command has made or changed: as `list` and `show` do, or for people in one short line."""
    show(thing, form, names=(name,), lines=(text or name,))


def dump(data: object, form: OutputFormat) -> None:
    """Print data, plain or in structs, as JSON or YAML."""
    data = msgspec.to_builtins(data)
    if form is OutputFormat.JSON:
        print(json.dumps(data, indent=2), flush=True)
    else:
        import yaml

        from parallelrun_core.untrusted.sanitize import visible

        text = yaml.safe_dump(data, sort_keys=False, allow_unicode=True)
        sys.stdout.write(visible(text) if sys.stdout.isatty() else text)


def table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield columns line by line, as narrow as possible and without a frame: easy to read, cut and grep."""
    cells = [list(titles), *([clean(cell, most=1000) for cell in row] for row in rows)]
    widths = [max(len(row[index]) for row in cells) for index in range(len(titles))]
    for row in cells:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def say_notes(notes: Iterable[object]) -> None:
    """Print the notes on a job file: what in it has no effect here, or another one."""
    for note in notes:
        say(f"note: {clean(str(note))}")


def say_summary(lines: Iterable[str], *, is_clean: bool) -> None:
    """Print how a job has ended. On a terminal, the first line stands out unless the job is clean: nothing failed."""
    for number, line in enumerate(lines):
        say(line, is_alarming=not number and not is_clean)


def say(text: str, *, is_alarming: bool = False) -> None:
    """Print a message for people. If they have closed their terminal, that is not an error."""
    with suppress(OSError, ValueError):
        has_colors = sys.stderr.isatty() and os.environ.get("TERM") != "dumb" and "NO_COLOR" not in os.environ
        if is_alarming and has_colors:
            text = typer.style(text, fg=typer.colors.RED, bold=True)
        print(text, file=sys.stderr, flush=True)
