"""Names and kinds of a text table's columns: found from its first rows, then frozen in the job folder.

The first worker to read the table writes the file; the others, and every later try, read it. So all mini-batches agree,
and a file that changes while the job runs changes no type.
"""

import json
import os
from collections.abc import Callable
from typing import Any

from parallelrun_worker.tables.inference import STRING, Kind, infer_as_azure, infer_exactly, infer_kind
from parallelrun_worker.tables.plan_records import read, with_crc
from parallelrun_worker.tables.records import Record

_NAMELESS = "Column"
"""How the name begins of a column that the header has none for."""


class Schema:
    """The columns of a table, in order."""

    def __init__(self, names: list[str], kinds: list[Kind]) -> None:
        self.names = names
        self.kinds = kinds
        self.odd: set[int] = set()
        """Columns with a value that doesn't fit the kind; only a hint for speed."""
        self._places: dict[str, int] | None = None

    def kind_of(self, name: str) -> Kind:
        """Return what a column is read as; text if the first rows didn't have it."""
        if self._places is None:
            self._places = {name: place for place, name in enumerate(self.names)}
        place = self._places.get(name)
        return STRING if place is None else self.kinds[place]

    def has_order_of(self, names: list[str]) -> bool:
        """Return whether these names are its columns, in this order. No header names those of longer rows."""
        count = len(names)
        return self.names[:count] == names and all(
            name.startswith(_NAMELESS) and name[len(_NAMELESS) :].isdecimal() for name in self.names[count:]
        )

    def widened(self, columns: int) -> "Schema":
        """Return the schema with names for so many columns; those after the known ones are text."""
        names = list(self.names)
        used_names = set(names)
        while len(names) < columns:
            names.append(_fresh(f"{_NAMELESS}{len(names) + 1}", used_names))
        return Schema(names, self.kinds + [STRING] * (columns - len(self.kinds)))


def _fresh(name: str, used_names: set[str]) -> str:
    """A name that is not taken yet, and is from now on."""
    fresh, number = name, 0
    while fresh in used_names:
        number += 1
        fresh = f"{name}_{number}"
    used_names.add(fresh)
    return fresh


def header_names(header: Record) -> list[str]:
    """Names of columns from a header: without blanks around them, none twice, none empty."""
    used_names: set[str] = set()
    return [
        _fresh((field or "").strip() or f"{_NAMELESS}{number}", used_names)
        for number, field in enumerate(header, start=1)
    ]


def infer_schema(names: list[str], rows: list[Record], options: dict[str, Any]) -> Schema:
    """The schema of a table with these first rows."""
    width = max([len(names), *map(len, rows)])
    schema = Schema(names, []).widened(width)
    infer = _inference(options)
    kinds = []
    for at, name in enumerate(schema.names):
        values = [row[at] if at < len(row) else None for row in rows]
        if name in options["overrides"]:
            kinds.append({**options["overrides"][name], "declared": True})
        elif not options["infer"] or (options["empty_as_string"] and None in values):
            kinds.append(STRING)
        else:
            kinds.append(infer(values))
    return Schema(schema.names, kinds)


def _inference(options: dict[str, Any]) -> Callable[[list[str | None]], Kind]:
    if not options.get("has_exact_integers"):  # a job of an earlier release
        return infer_kind
    return infer_exactly if options["inference"] == "exact" else infer_as_azure


def frozen(path: str) -> Schema | None:
    """The schema that was found before, or None.

    Raises:
        ValueError: it isn't what was written.
    """
    for place in (path, _of_workers(path)):
        try:
            record = read(place)
        except FileNotFoundError:
            continue
        return Schema(record["names"], record["kinds"])
    return None


def _of_workers(path: str) -> str:
    """Return where it is when workers are other users than their agent, who can't write to the job folder itself."""
    return os.path.join(os.path.dirname(path), "schemas", os.path.basename(path))


def freeze(path: str, schema: Schema) -> Schema:
    """Write a schema for all workers; returns that of another worker which was faster, if one was."""
    try:
        return _frozen_at(path, path, schema)
    except PermissionError:
        return _frozen_at(_of_workers(path), path, schema)


def _frozen_at(place: str, path: str, schema: Schema) -> Schema:
    beside = f"{place}.{os.getpid()}.{os.urandom(6).hex()}"
    try:
        with open(beside, "x", encoding="utf-8") as file:
            json.dump(with_crc({"names": schema.names, "kinds": schema.kinds}), file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        os.link(beside, place)
    except FileExistsError:
        return frozen(path) or schema
    finally:
        if os.path.exists(beside):
            os.unlink(beside)
    return schema
