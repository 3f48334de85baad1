"""Rows as lines of JSON, for an output file whose name ends in .jsonl or .ndjson."""

from __future__ import annotations

import functools
import json
import logging
import math
from typing import Any

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

_FINE = ("ns]", "ps]", "fs]", "as]")


def render(returned: Any) -> Rendered:
    """An object for each row of a DataFrame, otherwise the elements themselves.

    An element that is text with a JSON object or array is written as it is, on one line. Dataclasses and pydantic
    models are objects.

    Raises:
        BadReturn: what `kind_of` raises; two columns or keys have the same name; or JSON has no such value.
    """
    kind = kind_of(returned)
    if kind == "table":
        names = column_names(returned)
        check_distinct(names)
        # `strict` would shut out users whose environment has Python 3.8 or 3.9.
        lines = [_encoded(dict(zip(names, row))) for row in returned.itertuples(index=False, name=None)]  # noqa: B905
    else:
        lines = [_line(value) for value in (unpacked(returned) if kind == "array" else returned)]
    return Rendered("".join(f"{line}\n" for line in lines).encode("utf-8", "backslashreplace"), len(lines))


def _line(value: Any) -> str:
    if isinstance(value, str) and value[:1] in ("{", "["):
        try:
            return json.dumps(json.loads(value), ensure_ascii=False) if "\n" in value else _checked(value)
        except ValueError:
            pass  # it only looks like JSON
    if type(value) is dict:
        _check_keys(value)
    return _encoded(value)


def _encoded(value: Any) -> str:
    try:
        line = _encoder().encode(value)
    except (ValueError, TypeError):  # NaN, which JSON doesn't have, or keys of other types
        line = json.dumps(_clean(value), ensure_ascii=False, default=_plain)
    if line.find("{", 1) > 0:
        _check_keys_within(value)
    return line


@functools.lru_cache(maxsize=None)  # noqa: UP033 - a worker may have Python 3.8
def _encoder() -> json.JSONEncoder:
    """Make the encoder of all rows: `json.dumps` makes one for each, which is a quarter of its time."""
    return json.JSONEncoder(ensure_ascii=False, default=_plain, allow_nan=False)


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


def _checked(text: str) -> str:
    json.loads(text)
    return text


def _plain(value: Any) -> Any:
    """The JSON form of a value of NumPy, of pandas, or of the script's own classes."""
    if hasattr(value, "tolist"):
        plain = unpacked(value)
        return _of_numpy(plain) if hasattr(plain, "tolist") else _clean(plain)
    if hasattr(value, "isoformat"):
        return None if value != value else value.isoformat()  # noqa: PLR0124 - as NaT is
    if type(value).__name__ in ("NAType", "NaTType"):
        return None
    fields = plain_object(value)
    if fields is not None:
        _check_keys_within(fields)
        return _clean(fields)
    refuse_without_text((value,))
    return str(value)


def _of_numpy(value: Any) -> Any:
    """A value that Python has no type for: a time with all its digits, as pandas writes it, or a long float."""
    kind = value.dtype.kind
    if kind in "Mm":
        return _time(value)
    if value != value:  # noqa: PLR0124 - NaN
        return None
    return _clean(float(value)) if kind == "f" and float(value) == value else str(value)


def _time(value: Any) -> Any:
    """A time of NumPy that is in nanoseconds or finer, in months or years, or of a year that Python doesn't have."""
    if value != value:  # noqa: PLR0124 - NaT
        return None
    if isinstance(value.tolist(), int) and value.dtype.str[-3:] not in _FINE:
        return str(value)
    coarse = value.astype(f"{value.dtype.kind}8[us]")
    return coarse.tolist() if coarse == value else str(value)


def _clean(value: Any) -> Any:
    if isinstance(value, float):
        if math.isinf(value):
            _tell_of_infinity()
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): _clean(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_clean(each) for each in value]
    return value


@functools.lru_cache(maxsize=None)  # noqa: UP033 - a worker may have Python 3.8
def _tell_of_infinity() -> None:
    """Once in each worker: unlike a missing number, which is null as well, this value is lost."""
    logging.getLogger().warning("rows hold infinite numbers, which JSON doesn't have: they are null in the output")
