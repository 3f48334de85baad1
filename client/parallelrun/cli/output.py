"""Data on stdout: as a table for people, or as JSON, YAML or bare names for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from enum import StrEnum
from typing import Annotated, Any

import msgspec
import typer

from parallelrun.progress.text import clean


class Format(StrEnum):
    """How data is shown."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"
    NAME = "name"


FormatOption = Annotated[Format, typer.Option("--output", "-o", help="How to show it.")]


def show_list(
    rows: Iterable[msgspec.Struct],
    form: Format,
    *,
    name: Callable[[Any], str],
    columns: Sequence[tuple[str, Callable[[Any], object]]],
) -> None:
    """Print many things; names and tables line by line, the other forms as one list."""
    if form is Format.NAME:
        for row in rows:
            print(name(row))
    elif form is Format.TABLE:
        table(
            [title for title, _ in columns],
            [["" if (value := get(row)) is None else str(value) for _, get in columns] for row in rows],
        )
    else:
        dump([msgspec.to_builtins(row) for row in rows], form)


def show_one(thing: msgspec.Struct, form: Format, *, name: str, lines: Sequence[tuple[str, object]]) -> None:
    """Print one thing; as a table that is a line for each of its fields."""
    if form is Format.NAME:
        print(name)
    elif form is Format.TABLE:
        width = max(len(title) for title, _ in lines) + 1
        for title, value in lines:
            if value not in (None, ""):
                text = clean(str(value), lines=True, most=100_000).replace("\n", "\n" + " " * (width + 1))
                print(f"{title + ':':<{width}} {text}")
    else:
        dump(msgspec.to_builtins(thing), form)


def dump(data: object, form: Format) -> None:
    """Print plain data as JSON or YAML."""
    if form is Format.JSON:
        json.dump(data, sys.stdout, indent=2)
        print()
    else:
        import yaml

        yaml.safe_dump(data, sys.stdout, sort_keys=False, allow_unicode=True)


def table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print columns that are as wide as they must be, and no frame: easy to read, to cut and to grep."""
    cells = [list(titles), *([clean(cell, most=1000) for cell in row] for row in rows)]
    widths = [max(len(row[index]) for row in cells) for index in range(len(titles))]
    for row in cells:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def say_notes(notes: Iterable[object]) -> None:
    """What there is to know about a job file that is right, but won't do all that it says."""
    for note in notes:
        say(f"note: {clean(str(note))}")


def say(text: str) -> None:
    """A message for people, who may have closed their terminal: what is said to nobody stops nothing."""
    with suppress(OSError, ValueError):
        print(text, file=sys.stderr, flush=True)
