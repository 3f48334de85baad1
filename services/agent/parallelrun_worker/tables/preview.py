"""`python -P -m parallelrun_worker.tables.preview`: how a leader's code shows the first rows of a table.

On standard input: `{plan, schema, pieces, rows}`: the input's record in `inputs.json`, where its columns are frozen,
what to read, and how many rows are wanted. On standard output: `{columns, rows, files, warnings, errors}`.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from typing import Any

from parallelrun_worker.tables.data_warnings import DataWarnings
from parallelrun_worker.tables.elsewhere import read_some
from parallelrun_worker.tables.table import Table
from parallelrun_worker.tables.text import encoding_of
from parallelrun_worker.tables.text_format import TextFormat
from parallelrun_worker.tables.unpacking import MOST_MAGIC_BYTES, compression_of

_MOST_CHARACTERS = 200
_MOST_VALUES = 100_000
_MOST_IN_NAMES = 4 << 20
"""Characters of the names of columns, which are in each row."""
_WORDS = {"gz": "gzip", "bz2": "bzip2", "zst": "zstandard"}


def main() -> int:
    """Read the first rows, and print them with what is known of the files."""
    request = json.load(sys.stdin.buffer)
    warnings = DataWarnings()
    table = Table(request["plan"], request["schema"], warnings)
    frames: list[Any] = []
    errors: list[str] = []
    count, most = 0, request["rows"]
    for piece in request["pieces"]:
        if count >= most and frames:
            break
        try:
            frame = table.read([tuple(piece)])
        except (OSError, ValueError, ImportError) as error:
            errors.append(str(error)[:2000])
            continue
        most = min(most, max(1, _MOST_VALUES // max(1, len(frame.columns))))
        most = min(most, max(1, _MOST_IN_NAMES // max(1, sum(len(str(name)) for name in frame.columns))))
        frames.append(frame.head(max(0, most - count)))
        count += len(frame)
    print(json.dumps({
        "columns": _columns(frames), "rows": [row for frame in frames for row in _rows(frame)],
        "files": _files(table, request["plan"]), "warnings": json.loads(warnings.take()), "errors": errors,
    }))  # fmt: skip
    return 0


def _columns(frames: list[Any]) -> list[dict[str, str]]:
    """Name and type of each column, with the types of the values where these are Python's objects."""
    columns: dict[str, dict[str, str]] = {}
    for frame in frames:
        for at, name in enumerate(frame.columns):
            values = frame.iloc[:, at]
            kind = str(values.dtype)
            if kind == "object":
                kinds = sorted({type(value).__name__ for value in values if value is not None})
                kind = f"object ({', '.join(kinds)})" if kinds else "object"
            columns.setdefault(str(name), {"name": str(name), "type": kind})
    return list(columns.values())


def _rows(frame: Any) -> list[dict[str, str | None]]:
    names = [str(name) for name in frame.columns]
    rows = frame.itertuples(index=False, name=None)
    return [{name: _shown(value) for name, value in zip(names, row)} for row in rows]  # noqa: B905 - Python 3.9


def _shown(value: Any) -> str | None:
    """A value as Python writes it, so that a text can be told from a number; None is null."""
    if value is None or str(value) in ("nan", "NaT", "<NA>"):
        return None
    text = repr(value.item() if hasattr(value, "item") else value)
    return text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]}…"


def _files(table: Table, plan: dict[str, Any]) -> dict[str, dict[str, int]]:
    """Count the first files by their encoding, and by their compression."""
    encodings: Counter[str] = Counter()
    compressions: Counter[str] = Counter()
    form = table.format
    if not isinstance(form, TextFormat):
        return {"encodings": {}, "compressions": {}}
    for path in plan["sample"]:
        try:
            with form.open(path, "rb") as file:
                packed = compression_of(read_some(file, MOST_MAGIC_BYTES, 0), path)
            compressions[_WORDS.get(packed, packed) or "none"] += 1
            with form.opened(path) as file:
                encodings[encoding_of(file, form.options["encoding"]).name] += 1
        except (OSError, ValueError, ImportError):
            encodings["unreadable"] += 1
    return {"encodings": dict(encodings), "compressions": dict(compressions)}


if __name__ == "__main__":
    sys.exit(main())
