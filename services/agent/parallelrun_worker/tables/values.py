"""Values of text in columns that have a type: which of them fit, and what becomes of the others.

A value *fits* if its column's type has it and writing it back would give the number, word or time that stood there.
Others are *odd*: the type has no such value (`abc` in a column of numbers), or another one would stand for it (`007`
would become 7). `on_mismatch` of the table says what becomes of those: they are kept as their texts, are null, or fail
the mini-batch. Types that were inferred as Azure ML does (`inference: azure`) also give what would stand for them.

Whatever isn't kept is noted, so that a warning can tell.
"""

import json
import re
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

from parallelrun_worker.tables.byte_profile import ByteProfile
from parallelrun_worker.tables.conversion import as_dates, as_objects, words_of
from parallelrun_worker.tables.data_warnings import DataWarning
from parallelrun_worker.tables.inference import FLOAT, Kind, oddity

MOST_DIGITS = 4300
"""Python makes no number of more digits than that unless it is told to (`sys.set_int_max_str_digits`)."""
EXACT_IN_FLOAT = 1 << 53
INT64 = range(-(1 << 63), 1 << 63)
UINT64 = range(1 << 64)

_PLAIN_INT = re.compile(r"0|-?[1-9][0-9]*", re.ASCII)
_INT = re.compile(r"[+-]?[0-9]+", re.ASCII)
_INFINITE = ("inf", "Inf", "Infinity")
_INFINITY = float("inf")
_MISFIT = "mismatch"
_NOUNS = {
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "string": "a text",
    "datetime": "a date of the known forms in 1678 to 2261",
}


class OddValues(NamedTuple):
    """Odd values of one column that were not kept: the first of them, and how many."""

    column: str
    rule: str
    """Why they are odd: `mismatch`, `leading_zero`, …"""
    row: int
    """The row of the first value, counted from 0 in what was read."""
    text: str
    became: str
    """The value that the first one was read as, in words."""
    times: int


def warning_of(odd_value: OddValues, file: str, line: int = 0, offset: int = -1) -> DataWarning:
    """The warning that tells of such values, and how to have them otherwise."""
    event = f"{_shortened(odd_value.text)!r} {odd_value.became}"
    return DataWarning(
        odd_value.rule, file, odd_value.column, event, _remedy(odd_value), odd_value.times, "value", line, offset
    )


def _remedy(odd_value: OddValues) -> str:
    if odd_value.rule == _MISFIT:
        return "on_mismatch: keep, an option of the read step, would keep such values, and error refuse them"
    override = f"{{columns: {json.dumps(odd_value.column)}, column_type: string}}"
    remedy = (
        f"to keep what stands there: infer_column_types: {{column_type_overrides: [{override}]}}, or inference: exact, "
        "options of the read step"
    )
    if odd_value.rule != "ambiguous_day":
        return remedy
    mark = odd_value.text.strip().lstrip("0123456789")[:1]
    day_first, month_first = (mark.join(order) for order in (("%d", "%m", "%Y"), ("%m", "%d", "%Y")))
    return f"{remedy}; for dates, column_type: {{datetime: {{formats: ['{day_first}']}}}}, or '{month_first}'"


class BadValue(ValueError):
    """A value doesn't fit the type of its column, and the table refuses such values.

    Args:
        row: counted from 0 in what was read.
    """

    def __init__(self, column: str, row: int, problem: str) -> None:
        super().__init__(f"column {column!r}: {problem}")
        self.row = row


class Values:
    """The rules for odd values, and the odd ones in one piece of a table.

    Args:
        on_mismatch: `keep`, `null` or `error`.
        is_exact: a value that another would stand for is one that doesn't fit.
    """

    def __init__(self, on_mismatch: str, *, is_exact: bool) -> None:
        self.on_mismatch = on_mismatch
        self.is_exact = is_exact
        self.found: dict[tuple[str, str], OddValues] = {}
        self.is_unusual = False
        """The text was read by the grammar itself, since no faster parser would have read it likewise."""
        self.may_be_ragged = False
        """A fast parser has not taken the text, as it takes no records of different lengths."""
        self.byte_profile: ByteProfile | None = None
        """What bytes the text has that is read; None: not known."""
        self.may_hold_newlines = True
        """False: a parser that takes no text with a quote that is never closed has found no value with a newline."""
        self.text_dtype: Any = None
        """The dtype of columns of texts; None: they are objects."""

    def note(self, odd_value: OddValues) -> None:
        """Note some odd values; of the same column and rule, the first stays."""
        earlier = self.found.get(odd_value[:2])
        times = odd_value.times + (earlier.times if earlier else 0)
        first = earlier if earlier is not None and earlier.row <= odd_value.row else odd_value
        self.found[odd_value[:2]] = first._replace(times=times)

    def of_column(self, name: str, kind: Kind) -> "ColumnValues":
        return ColumnValues(self, name, kind)


class ColumnValues:
    def __init__(self, owner: Values, name: str, kind: Kind) -> None:
        self._owner = owner
        self.name = name
        self.kind = kind
        self._reads = _READERS.get(kind["kind"])
        self.is_exact = owner.is_exact
        self.text_dtype = owner.text_dtype
        self.is_flagged = "odd" in kind
        """Most of its values are odd; see `inference`."""

    def column(self, texts: Sequence[str | None]) -> Any:
        """All texts of the column, as a column of pandas.

        Raises:
            BadValue: one doesn't fit, and the table refuses it.
        """
        import pandas as pd

        if self.kind["kind"] == "datetime":
            return self.dates(pd.Series(texts, dtype=object), range(len(texts)))
        if self._reads is None:
            return as_objects(pd.Series(texts, dtype=object))
        return assembled(self.kind, self.read(texts, range(len(texts))))

    def read(self, texts: Iterable[str | None], rows: Iterable[int]) -> list[Any]:
        """Texts that are no dates as values, None for null and where nothing stands; `rows`: where each is."""
        return [
            None if text is None or not text or text.isspace() else self._read(text, row)
            for text, row in zip(texts, rows, strict=True)
        ]

    def parsed(self, values: Sequence[Any]) -> Any:
        """Values of JSON as a column of pandas. One that is of another type doesn't fit.

        Raises:
            BadValue: one doesn't fit, and the table refuses it.
        """
        import pandas as pd

        fitting = _FITTING.get(self.kind["kind"])
        if fitting is None:
            return as_objects(pd.Series(values, dtype=object))
        odd = [row for row, value in enumerate(values) if value is not None and type(value) not in fitting]
        odd = [row for row in odd if not _is_long_number(values[row])]
        column = list(values)
        for row in odd:
            text = column[row] if type(column[row]) is str else json.dumps(column[row], ensure_ascii=False)
            is_kept = self.in_place_of(None, _MISFIT, row, text) is not None
            column[row] = column[row] if is_kept else None
        return _of_parsed(self.kind, column, has_others=any(column[row] is not None for row in odd))

    def _read(self, text: str, row: int) -> Any:
        assert self._reads is not None  # noqa: S101 - for the type checker
        value, rule = self._reads(text, self.kind)
        return self.in_place_of(value, rule, row, text) if rule else value

    def in_place_of(self, value: Any, rule: str, row: int, text: str) -> Any:
        """Return what an odd value becomes.

        Args:
            value: what would stand for it; None: nothing would.
            rule: why it is odd.

        Raises:
            BadValue: the table refuses it.
        """
        owner = self._owner
        if rule != _MISFIT and self.kind.get("declared"):
            return value  # the job asks for this type
        if rule != _MISFIT and not owner.is_exact:
            owner.note(OddValues(self.name, rule, row, text, f"was read as {_shown(value)}", 1))
            return value
        if owner.on_mismatch == "keep":
            return text
        noun = _NOUNS[self.kind["kind"]]
        if owner.on_mismatch == "error":
            raise BadValue(self.name, row, f"{_shortened(text)!r} is not {noun}")
        owner.note(
            OddValues(self.name, _MISFIT, row, text, f"is not {noun}, as the first rows are, and became null", 1)
        )
        return None

    def note_all(self, row: int, text: str, became: str, times: int) -> None:
        """Note that all values of the column are odd, for the reason that was found when its type was inferred."""
        if times and not self.kind.get("declared"):
            self._owner.note(OddValues(self.name, self.kind["odd"], row, text, became, times))

    def dates(self, texts: Any, rows: Sequence[int]) -> Any:
        """A column of texts as times.

        Args:
            texts: a Series of str and None.
            rows: where each is.
        """
        if self.is_flagged:  # which number is the day?
            present = texts.notna().to_numpy().nonzero()[0]
            if len(present):
                first = int(present[0])
                self.note_all(rows[first], texts.iloc[first], "may be a day or a month, and became null", len(present))
            return as_dates(texts, self.kind)
        dates = as_dates(texts, self.kind)
        return self.with_odd_dates(dates, texts, rows, (dates.isna() & texts.notna()).to_numpy().nonzero()[0])

    def with_odd_dates(self, dates: Any, texts: Any, rows: Sequence[int], odd: Sequence[int]) -> Any:
        """The dates with what becomes of those texts, at these places, that are no such dates.

        Args:
            dates: a Series of times; null where a text is odd.
            texts: what stood there, by place.
        """
        words = {int(place): texts[place] for place in odd}
        kept_values = {
            place: self.in_place_of(None, _MISFIT, rows[place], text)
            for place, text in words.items()
            if text and not text.isspace()
        }
        if not any(text is not None for text in kept_values.values()):
            return dates
        values = as_objects(dates)
        for place, text in kept_values.items():
            values.iloc[place] = text
        return values


def int_column(values: Sequence[Any]) -> Any:
    """Whole numbers and nulls as a column that holds each exactly; with texts among them, of Python objects.

    `int64`; beside nulls `float64` as long as that is exact, and else `Int64`, which pandas can leave empty; Python's
    own numbers where one is beyond 64 bits.
    """
    import pandas as pd

    numbers = [value for value in values if value is not None]
    if any(type(value) is not int for value in numbers):
        return pd.Series(values, dtype=object)
    low, high = min(numbers, default=0), max(numbers, default=0)
    if low not in INT64 or high not in INT64:
        return pd.Series(values, dtype=object)
    if len(numbers) == len(values) and numbers:
        return pd.Series(values, dtype="int64")
    is_small = low >= -EXACT_IN_FLOAT and high <= EXACT_IN_FLOAT
    return pd.Series(values, dtype="float64" if is_small else "Int64")


def assembled(kind: Kind, values: list[Any]) -> Any:
    """Python's values, None for null and texts that were kept as a column; no dates."""
    import pandas as pd

    if kind["kind"] == "int":
        return int_column(values)
    if any(type(value) is str for value in values):
        return pd.Series(values, dtype=object)
    if kind["kind"] == "float":
        return pd.Series(values, dtype="float64")
    is_whole = bool(values) and all(value is not None for value in values)
    return pd.Series(values, dtype="bool" if is_whole else object)


def _of_parsed(kind: Kind, values: Sequence[Any], *, has_others: bool) -> Any:
    """Values of JSON, each of which a column holds exactly."""
    import pandas as pd

    if kind["kind"] == "string" or has_others or any(map(_is_long_number, values)):
        return pd.Series(values, dtype=object)
    if kind["kind"] == "bool":
        return assembled(kind, list(values))
    types = set(map(type, values)) - {type(None)}
    if types == {int} and kind["kind"] == "int":
        return int_column(values)
    return pd.Series(values, dtype="float64" if all(map(_is_exact, values)) else object)


def _is_long_number(value: Any) -> bool:
    """Return whether it is the text of a number that has more digits than Python makes one of."""
    return type(value) is str and len(value) > MOST_DIGITS and _INT.fullmatch(value) is not None


def _is_exact(value: Any) -> bool:
    """Return whether a number, or null, is exact in a float."""
    return type(value) is not int or -EXACT_IN_FLOAT <= value <= EXACT_IN_FLOAT or _is_float(value)


def _is_float(value: int) -> bool:
    try:
        return int(float(value)) == value
    except OverflowError:
        return False


def _int(text: str, _kind: Kind) -> tuple[Any, str]:
    word = text.strip()
    if _PLAIN_INT.fullmatch(word):
        return (int(word) if len(word) <= MOST_DIGITS else word), ""
    if _INT.fullmatch(word):
        return (int(word) if len(word) <= MOST_DIGITS else word), oddity(word)
    number = _number(word)
    if number is None or number != number or number in (float("inf"), float("-inf")):  # noqa: PLR0124 - NaN
        return None, _MISFIT
    return int(Decimal(word)), "exponent" if "e" in word.lower() else "fraction"


def _float(text: str, kind: Kind) -> tuple[Any, str]:
    word = text.strip()
    number = _number(word)
    if number is None or (number in (float("inf"), float("-inf")) and word.lstrip("+-") not in _INFINITE):
        return None, _MISFIT
    if EXACT_IN_FLOAT <= abs(number) < _INFINITY and "e" not in word.lower() and int(number) != int(Decimal(word)):
        return number, "rounded"
    return number, oddity(word) if "odd" in kind else ""


def _number(word: str) -> float | None:
    return float(word) if FLOAT.fullmatch(word) else None


def _bool(text: str, kind: Kind) -> tuple[Any, str]:
    word = text.strip()
    truth = words_of(kind).get(word)
    if truth is None:
        truth = {"true": True, "false": False}.get(kind.get("mismatch_as", "error"))
        return truth, _MISFIT if truth is None else ""
    is_spelled = word.lower() in ("true", "false") or "true_values" in kind or "false_values" in kind
    return truth, "" if is_spelled else "truth"


def _shown(value: Any) -> str:
    return _shortened(str(value)) if type(value) is not float else repr(value)


def _shortened(text: str, most: int = 80) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}… ({len(text):,} characters)"


_FITTING: dict[str, tuple[type, ...]] = {"int": (int, float), "float": (int, float), "bool": (bool,), "string": (str,)}
"""The types of JSON's values that fit a column of that kind."""
_READERS = {"int": _int, "float": _float, "bool": _bool}
