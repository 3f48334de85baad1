"""Rows as lines of JSON, for an output file whose name ends in .jsonl or .ndjson."""

from __future__ import annotations

import json
import math
from typing import Any

from parallelrun_worker.rows import RowRenderer, json_columns
from parallelrun_worker.rows.returned import (
    BadReturn,
    Rendered,
    check_distinct,
    column_names,
    kind_of,
    plain_object,
    refuse_without_text,
    unpacked,
)
from parallelrun_worker.tables.data_warnings import DataWarning

_FINE = ("ns]", "ps]", "fs]", "as]")


class JsonRows(RowRenderer):
    """Renders what `run()` returns, and warns of infinite numbers: JSON has none, and null is written for them."""

    def __init__(self, output: dict[str, Any], *checks: Any) -> None:
        super().__init__(output, *checks)
        self._infinite = 0
        """Infinite numbers in the rows so far."""
        self._has_constants = False
        self._decoder = json.JSONDecoder(parse_constant=self._constant)
        # `json.dumps` makes an encoder for each row, which is a quarter of its time.
        self._encoder = json.JSONEncoder(ensure_ascii=False, default=self._plain, allow_nan=False)

    def render(self, returned: Any) -> Rendered:
        """An object for each row of a DataFrame, otherwise the elements themselves.

        An element that is text with a JSON object or array is written as it is, on one line. Dataclasses and pydantic
        models are objects.

        Raises:
            BadReturn: what `kind_of` raises; two columns or keys have the same name; or JSON has no such value.
        """
        kind = kind_of(returned)
        self._infinite = 0
        if kind == "table":
            names = column_names(returned)
            check_distinct(names)
            content = json_columns.lines_of(returned, names)
            if content is not None:
                return Rendered(content, len(returned))
            # `strict` would shut out users whose environment has Python 3.8 or 3.9.
            rows = returned.itertuples(index=False, name=None)
            lines = [self._encoded(dict(zip(names, row))) for row in rows]  # noqa: B905
        else:
            lines = [self._line(value) for value in (unpacked(returned) if kind == "array" else returned)]
        if self._infinite and self._warnings is not None:
            event = "run() returned infinite numbers, which JSON doesn't have: null was written for them"
            remedy = "an output file that ends in .parquet or .csv keeps them"
            self._warnings.add(DataWarning("returned_infinity", "", "", event, remedy, self._infinite, "number"))
        return Rendered("".join(f"{line}\n" for line in lines).encode("utf-8", "backslashreplace"), len(lines))

    def _line(self, value: Any) -> str:
        if isinstance(value, str) and value[:1] in ("{", "["):
            self._has_constants = False
            try:
                plain = self._decoder.decode(value)
            except ValueError:
                pass  # it only looks like JSON
            else:
                is_written = not self._has_constants and "\n" not in value and "\r" not in value
                return value if is_written else json.dumps(self._clean(plain), ensure_ascii=False)
        if type(value) is dict:
            _check_keys(value)
        return self._encoded(value)

    def _constant(self, name: str) -> None:
        """Take NaN and infinity in a text for null: Python reads and writes them, and nobody else does."""
        self._has_constants = True
        self._infinite += name != "NaN"

    def _encoded(self, value: Any) -> str:
        infinite = self._infinite
        try:
            line = self._encoder.encode(value)
        except (ValueError, TypeError):  # NaN, which JSON doesn't have, or keys of other types
            self._infinite = infinite
            line = json.dumps(self._clean(value), ensure_ascii=False, default=self._plain)
        if line.find("{", 1) > 0:
            _check_keys_within(value)
        return line

    def _plain(self, value: Any) -> Any:
        """The JSON form of a value of NumPy, of pandas, or of the script's own classes."""
        if hasattr(value, "tolist"):
            plain = unpacked(value)
            return self._of_numpy(plain) if hasattr(plain, "tolist") else self._clean(plain)
        if hasattr(value, "isoformat"):
            return None if value != value else value.isoformat()  # noqa: PLR0124 - as NaT is
        if type(value).__name__ in ("NAType", "NaTType"):
            return None
        fields = plain_object(value)
        if fields is not None:
            _check_keys_within(fields)
            return self._clean(fields)
        refuse_without_text((value,))
        return str(value)

    def _of_numpy(self, value: Any) -> Any:
        """A value that Python has no type for: a time with all its digits, as pandas writes it, or a long float."""
        kind = value.dtype.kind
        if kind in "Mm":
            return _time(value)
        if value != value:  # noqa: PLR0124 - NaN
            return None
        return self._clean(float(value)) if kind == "f" and float(value) == value else str(value)

    def _clean(self, value: Any) -> Any:
        if isinstance(value, float):
            self._infinite += math.isinf(value)
            return value if math.isfinite(value) else None
        if isinstance(value, dict):
            return {_key(key): self._clean(each) for key, each in value.items()}
        if isinstance(value, (list, tuple)):
            return [self._clean(each) for each in value]
        return value


RENDERER = JsonRows


def _check_keys(value: dict[Any, Any]) -> None:
    """Refuse an object of which JSON would have two values by one name, so that readers lose one of them."""
    if set(map(type, value)) <= {str}:
        return
    for text_of in (str, _key):
        texts = [text_of(key) for key in value]
        if len(set(texts)) < len(texts):
            same = ", ".join(repr(key) for key, text in zip(value, texts) if texts.count(text) > 1)  # noqa: B905 - see above
            raise BadReturn(f"run() returned an object with two keys that are the same text: {same}")


def _key(key: Any) -> str:
    """Return a key as JSON has it."""
    return {True: "true", False: "false"}[key] if isinstance(key, bool) else "null" if key is None else str(key)


def _check_keys_within(value: Any) -> None:
    """Check the keys of all objects in a value."""
    if isinstance(value, dict):
        _check_keys(value)
        value = value.values()
    elif not isinstance(value, (list, tuple)):
        return
    for each in value:
        _check_keys_within(each)


def _time(value: Any) -> Any:
    """A time of NumPy that is in nanoseconds or finer, in months or years, or of a year that Python doesn't have."""
    if value != value:  # noqa: PLR0124 - NaT
        return None
    if isinstance(value.tolist(), int) and value.dtype.str[-3:] not in _FINE:
        return str(value)
    coarse = value.astype(f"{value.dtype.kind}8[us]")
    return coarse.tolist() if coarse == value else str(value)
