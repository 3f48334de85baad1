"""JSON lines to a DataFrame: one object on each line."""

import json
from typing import Any

from parallelrun_worker.tables.conversion import as_objects
from parallelrun_worker.tables.inference import Kind
from parallelrun_worker.tables.schema import Schema

ANY: Kind = {"kind": "any"}
_KINDS: dict[type, str] = {bool: "bool", int: "int", float: "float", str: "string"}


def read_objects(data: bytes, *, drop_invalid: bool) -> list[dict[str, Any]]:
    """The objects on the lines.

    Raises:
        ValueError: a line is not a JSON object, unless such lines are to be dropped.
    """
    return [each for _, each in read_lines(data, drop_invalid=drop_invalid)]


def read_lines(data: bytes, *, drop_invalid: bool) -> list[tuple[bytes, dict[str, Any]]]:
    """The lines that are objects, each with its object.

    Raises:
        ValueError: as `read_objects`.
    """
    lines = [line for line in data.split(b"\n") if line.strip()]
    try:
        found = json.loads(b"[" + b",".join(lines) + b"]") if lines else []
        if len(found) == len(lines) and all(type(each) is dict for each in found):
            return list(zip(lines, found, strict=True))
    except ValueError:
        pass
    return [(line, each) for line in lines if (each := _object(line, drop_invalid=drop_invalid)) is not None]


def _object(line: bytes, *, drop_invalid: bool) -> dict[str, Any] | None:
    problem = "not an object"
    try:
        found = json.loads(line)
        if isinstance(found, dict):
            return found
    except ValueError as error:
        problem = str(error)
    if drop_invalid:
        return None
    raise ValueError(f"a line is not a JSON object ({problem}): {line[:80]!r}; invalid_lines: drop would leave it out")


def infer_objects(objects: list[dict[str, Any]]) -> Schema:
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


def frame_of(objects: list[dict[str, Any]], schema: Schema) -> Any:
    """The objects as a DataFrame with the columns of the schema, then those that it doesn't have."""
    import pandas as pd

    names = list(schema.names)
    names += [name for name in dict.fromkeys(name for each in objects for name in each) if name not in schema.names]
    found = {}
    for name in names:
        values = [each.get(name) for each in objects]
        kind = schema.kinds[schema.names.index(name)] if name in schema.names else ANY
        found[name] = _column(pd.Series(values, dtype=object), kind)
    return pd.DataFrame(found, index=range(len(objects)))


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
