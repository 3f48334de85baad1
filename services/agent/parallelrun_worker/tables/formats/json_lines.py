"""JSON lines: one object on each line. Any row may have columns that no other has."""

import json
import math
import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, BinaryIO

from parallelrun_worker.tables.arrow_arrays import arrow_of
from parallelrun_worker.tables.conversion import as_objects
from parallelrun_worker.tables.heads import FileHead
from parallelrun_worker.tables.inference import Kind
from parallelrun_worker.tables.json_by_arrow import frame_of_table, read_table, with_nulls
from parallelrun_worker.tables.line_ends import has_lone_returns
from parallelrun_worker.tables.records import NotPlain, Record
from parallelrun_worker.tables.schema import Schema
from parallelrun_worker.tables.sniffing import Encoding
from parallelrun_worker.tables.table_format import Piece
from parallelrun_worker.tables.text import as_utf8, owned_bytes
from parallelrun_worker.tables.text_dtype import put_text_dtype
from parallelrun_worker.tables.text_format import SAMPLE_BYTES, BadLine, PieceText, TextFormat
from parallelrun_worker.tables.values import MOST_DIGITS, Values

_ANY: Kind = {"kind": "any"}
_SAMPLE_OBJECTS = 200
_BLANKS = " \t\r\ufeff"
"""With the byte order mark, which is between lines where files were put together."""
_LONE_RETURN = re.compile(rb"\r(?!\n)")
_ESCAPED = re.compile("[\udc80-\udcff]")
"""A byte that is not UTF-8, which Python stands a surrogate for."""
_MAY_BE_HUGE = re.compile(r"[0-9][eE]\+?[0-9]{3}|[0-9]{309}")
"""A number that a float may not hold: Python would make it infinite."""
_NAME = re.compile(r'"[ \t\r\n]*:')
_KINDS: dict[type, str] = {bool: "bool", int: "int", float: "float", str: "string"}


class JsonLinesFormat(TextFormat):
    """An object is a row."""

    imports = ("pyarrow.json",)
    suffixes = (".jsonl", ".ndjson")
    has_fixed_columns = False

    def __init__(self, plan: dict[str, Any], schema_path: str) -> None:
        super().__init__(plan, schema_path)
        self._drop_invalid = self.options["invalid_lines"] == "drop"

    @staticmethod
    def read_file(path: str) -> Any:
        with open(path, "rb") as file:
            objects = [each for _, each in _lines(file.read(), drop_invalid=False)]
        return _frame_of(objects, _infer(objects), Values("keep", is_exact=True))  # pandas makes numbers of texts

    def names(self) -> list[str]:
        return self.inferred().names

    def lines(
        self, data: bytes, encoding: Encoding, file: BinaryIO, head: FileHead, *, may_have_returns: bool = True
    ) -> bytes:
        return _LONE_RETURN.sub(b"\n", data) if may_have_returns and has_lone_returns(data) else data

    def split(self, text: PieceText) -> list[bytes]:
        return [f"{line}\n".encode() for line, _ in _lines(text.data, drop_invalid=self._drop_invalid)]

    def frame_of(self, text: PieceText, path: str) -> Any:
        values = self.values()
        frame = self._frame(text.data, values)
        self.warn(values, path)
        return frame

    def frame_of_stored(self, data: bytes, path: str, header: Record) -> Any:
        return self._frame(data, self.values())

    def _frame(self, data: bytes, values: Values | None) -> Any:
        schema = self.schema()
        if values is not None:
            with suppress(NotPlain):
                return frame_of_table(read_table(data, schema), schema, self.text_dtype)
        frame = _frame_of([each for _, each in _lines(data, drop_invalid=self._drop_invalid)], schema, values)
        texts = (name for name, kind in zip(schema.names, schema.kinds, strict=True) if kind["kind"] == "string")
        put_text_dtype(frame, texts, self.text_dtype)
        return frame

    def arrow(self, piece: Piece) -> Any:
        text = self.text(piece)
        with self.placing(piece[0], text):
            try:
                return with_nulls(read_table(text.data, self.schema(), has_objects=True))
            except NotPlain:
                return arrow_of(self.frame_of(text, piece[0]), self.kinds())

    def objects(self, piece: Piece) -> list[dict[str, Any]]:
        text = self.text(piece)
        with self.placing(piece[0], text):
            return [each for _, each in _lines(text.data, drop_invalid=self._drop_invalid)]

    def inferred(self) -> Schema:
        return _infer(list(self._first_objects()))

    def _first_objects(self) -> Iterator[dict[str, Any]]:
        count = _SAMPLE_OBJECTS
        for file, encoding, head in self.sampled():
            data = as_utf8(owned_bytes(file, 0, SAMPLE_BYTES, encoding, is_aligned=False), encoding)
            sampled = _lines(self.lines(data, encoding, file, head), drop_invalid=True, most=count)
            yield from (each for _, each in sampled)
            count -= len(sampled)
            if count <= 0:
                return


def _lines(data: bytes, *, drop_invalid: bool, most: int = sys.maxsize) -> list[tuple[str, dict[str, Any]]]:
    """The lines that are objects, each with its object.

    Args:
        most: how many are wanted.

    Raises:
        UnicodeDecodeError: the text is not UTF-8.
        BadLine: one is not an object, unless such lines are to be dropped.
    """
    raw_decode = json.JSONDecoder().raw_decode
    decode_checked = json.JSONDecoder(object_pairs_hook=_with_unique_names).raw_decode
    decode_long = json.JSONDecoder(
        object_pairs_hook=_with_unique_names, parse_int=_whole_number, parse_float=_finite_number
    ).raw_decode
    lines = []
    for number, line in enumerate(_decoded(data, is_strict=not drop_invalid).split("\n")):
        if not line or line.isspace():
            continue
        try:
            start = 0 if line[0] == "{" else len(line) - len(line.lstrip(_BLANKS))
            is_long = len(line) > MOST_DIGITS or _MAY_BE_HUGE.search(line) is not None
            value, end = decode_long(line, start) if is_long else raw_decode(line, start)
            if not is_long and _may_repeat_names(line, value):
                value, end = decode_checked(line, start)
        except (ValueError, RecursionError) as error:
            problem = str(error)
        else:
            if type(value) is dict and (end == len(line) or not line[end:].strip(_BLANKS)):
                lines.append((line, value))
                if len(lines) >= most:
                    break
                continue
            problem = "something follows its object" if type(value) is dict else "not an object"
        if not drop_invalid:
            hint = "invalid_lines: drop would leave it out"
            raise BadLine(number, f"it is not a JSON object ({problem}): {line[:80]!r}; {hint}")
    return lines


def _whole_number(digits: str) -> int | str:
    """A number, or its text if Python makes none of so many digits."""
    return int(digits) if len(digits) <= MOST_DIGITS else digits


def _finite_number(text: str) -> float | str:
    """A number, or its text if it is larger than any float."""
    number = float(text)
    return text if math.isinf(number) else number


def _decoded(data: bytes, *, is_strict: bool) -> str:
    """The text; lines that are not UTF-8 are made ones that are no objects, unless they are to be refused."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        if is_strict:
            raise
    lines = data.decode(errors="surrogateescape").split("\n")
    return "\n".join("?" if _ESCAPED.search(line) else line for line in lines)


def _may_repeat_names(line: str, value: Any) -> bool:
    """Return whether a line may name a value twice: it has more colons, behind quotes, than its object has values."""
    return type(value) is dict and line.count(":") > len(value) and len(_NAME.findall(line)) > len(value)


def _with_unique_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON, which may name each of its values once: of two of one name, Python would drop the first."""
    value = dict(pairs)
    if len(value) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"it has {twice!r} more than once")
    return value


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


def _frame_of(objects: list[dict[str, Any]], schema: Schema, rules: Values | None) -> Any:
    """The objects as a DataFrame with the columns of the schema, then those that it doesn't have."""
    import pandas as pd

    names = list(schema.names)
    names += [name for name in dict.fromkeys(name for each in objects for name in each) if name not in schema.names]
    columns = {}
    for name in names:
        values = [each.get(name) for each in objects]
        kind = schema.kinds[schema.names.index(name)] if name in schema.names else _ANY
        if rules is None:
            columns[name] = _column(pd.Series(values, dtype=object), kind)
        else:
            columns[name] = rules.of_column(name, kind).parsed(values)
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
