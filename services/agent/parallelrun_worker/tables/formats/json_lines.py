"""JSON lines: one object on each line. Any row may have columns that no other has."""

import json
from collections.abc import Iterator
from typing import Any

from parallelrun_worker.tables.conversion import as_objects
from parallelrun_worker.tables.inference import Kind
from parallelrun_worker.tables.records import Record
from parallelrun_worker.tables.schema import Schema
from parallelrun_worker.tables.text import encoding_of, owned_bytes, to_utf8
from parallelrun_worker.tables.text_format import SAMPLE_BYTES, TextFormat

_ANY: Kind = {"kind": "any"}
_SAMPLE_OBJECTS = 200
_KINDS: dict[type, str] = {bool: "bool", int: "int", float: "float", str: "string"}


class Format(TextFormat):
    """An object is a row."""

    has_fixed_columns = False

    def __init__(self, plan: dict[str, Any], schema_path: str) -> None:
        super().__init__(plan, schema_path)
        self._drop_invalid = self.options["invalid_lines"] == "drop"

    def names(self) -> list[str]:
        """See the base."""
        return self.inferred().names

    def split(self, data: bytes) -> list[bytes]:
        """See the base."""
        return [line + b"\n" for line, _ in _lines(data, drop_invalid=self._drop_invalid)]

    def frame_of_stored(self, data: bytes, path: str, header: Record) -> Any:
        """See the base."""
        schema = self.schema()
        return _frame_of([each for _, each in _lines(data, drop_invalid=self._drop_invalid)], schema)

    def inferred(self) -> Schema:
        """See the base."""
        return _infer(list(self._first_objects()))

    def _first_objects(self) -> Iterator[dict[str, Any]]:
        wanted = _SAMPLE_OBJECTS
        for path in self.sample:
            with self.open(path, "rb") as file:
                encoding = encoding_of(file, self.options["encoding"])
                data = to_utf8(owned_bytes(file, 0, SAMPLE_BYTES, encoding, is_aligned=False), encoding)
            objects = [each for _, each in _lines(data, drop_invalid=self._drop_invalid)[:wanted]]
            yield from objects
            wanted -= len(objects)
            if wanted <= 0:
                return


def _lines(data: bytes, *, drop_invalid: bool) -> list[tuple[bytes, dict[str, Any]]]:
    """The lines that are objects, each with its object.

    Raises:
        ValueError: one is not, unless such lines are to be dropped.
    """
    lines = [line for line in data.split(b"\n") if line.strip()]
    try:
        objects = json.loads(b"[" + b",".join(lines) + b"]") if lines else []
        if len(objects) == len(lines) and all(type(each) is dict for each in objects):
            return list(zip(lines, objects, strict=True))
    except ValueError:
        pass
    return [(line, each) for line in lines if (each := _object(line, drop_invalid=drop_invalid)) is not None]


def _object(line: bytes, *, drop_invalid: bool) -> dict[str, Any] | None:
    problem = "not an object"
    try:
        value = json.loads(line)
        if isinstance(value, dict):
            return value
    except ValueError as error:
        problem = str(error)
    if drop_invalid:
        return None
    raise ValueError(f"a line is not a JSON object ({problem}): {line[:80]!r}; invalid_lines: drop would leave it out")


def _infer(objects: list[dict[str, Any]]) -> Schema:
    """Names and kinds of the columns of a table with these first rows."""
    kinds: dict[str, str] = {}
    for each in objects:
        for name, value in each.items():
            kind = _KINDS.get(type(value), "any")
            earlier = kinds.get(name, "")
            if value is None:
                kinds.setdefault(name, "")
            elif {earlier, kind} == {"int", "float"}:
                kinds[name] = "float"
            else:
                kinds[name] = kind if earlier in ("", kind) else "any"
    return Schema(list(kinds), [{"kind": kind or "any"} for kind in kinds.values()])


def _frame_of(objects: list[dict[str, Any]], schema: Schema) -> Any:
    """The objects as a DataFrame with the columns of the schema, then those that it doesn't have."""
    import pandas as pd

    names = list(schema.names)
    names += [name for name in dict.fromkeys(name for each in objects for name in each) if name not in schema.names]
    columns = {}
    for name in names:
        values = [each.get(name) for each in objects]
        kind = schema.kinds[schema.names.index(name)] if name in schema.names else _ANY
        columns[name] = _column(pd.Series(values, dtype=object), kind)
    return pd.DataFrame(columns, index=range(len(objects)))


def _column(values: Any, kind: Kind) -> Any:
    match kind["kind"]:
        case "int" | "float":
            fits = values.map(lambda value: type(value) in (int, float))
            numbers = values.where(fits, None)
            if kind["kind"] == "int" and bool(fits.all()):
                try:
                    return numbers.astype("int64") if numbers.map(type).eq(int).all() else numbers.astype("float64")
                except OverflowError:
                    pass
            return numbers.astype("float64")
        case "bool":
            fits = values.map(lambda value: type(value) is bool)
            return values.astype(bool) if bool(fits.all()) and len(values) else values.where(fits, None)
        case "string":
            return values.where(values.map(lambda value: type(value) is str), None)
        case _:
            return as_objects(values)
