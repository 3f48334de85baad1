"""Data on stdout: as a table for people, or as JSON, YAML or bare names for programs."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Sequence
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


def show_list(
    rows: Iterable[msgspec.Struct],
    form: OutputFormat,
    *,
    columns: Sequence[Column],
    name: Callable[[Any], str] = attrgetter("name"),
) -> None:
    """Print several objects: names and tables line by line, the other forms as one list."""
    from parallelrun_core.untrusted.sanitize import visible

    if form is OutputFormat.NAME:
        for row in rows:
            print(visible(name(row), lines=False))
    elif form is OutputFormat.TABLE:
        pairs = [
            (each.replace("_", " ").upper(), attrgetter(each)) if isinstance(each, str) else each for each in columns
        ]
        table(
            [title for title, _ in pairs],
            [["" if (value := get(row)) is None else str(value) for _, get in pairs] for row in rows],
        )
    else:
        dump(list(rows), form)


def show_one(thing: msgspec.Struct, form: OutputFormat, *, name: str, lines: Sequence[tuple[str, object]]) -> None:
    """Print one object; as a table, that is a line for each of its fields."""
    if form is OutputFormat.NAME:
        print(name)
    elif form is OutputFormat.TABLE:
        width = max(len(title) for title, _ in lines) + 1
        for title, value in lines:
            if value not in (None, ""):
                text = clean(str(value), lines=True, most=100_000).replace("\n", "\n" + " " * (width + 1))
                print(f"{title + ':':<{width}} {text}")
    else:
        dump(thing, form)


def show_change(thing: msgspec.Struct, form: OutputFormat, *, name: str, text: str = "") -> None:
    """Print what a command has made or changed: as `list` and `show` do, or for people in one short line."""
    if form is OutputFormat.TABLE:
        print(text or name, flush=True)
    elif form is OutputFormat.NAME:
        print(name, flush=True)
    else:
        dump(thing, form)


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


def table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print columns that are as narrow as possible and have no frame: easy to read, cut and grep."""
    cells = [list(titles), *([clean(cell, most=1000) for cell in row] for row in rows)]
    widths = [max(len(row[index]) for row in cells) for index in range(len(titles))]
    for row in cells:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


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
