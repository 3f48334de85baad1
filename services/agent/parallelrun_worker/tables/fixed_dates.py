"""Dates, or whole numbers, that are all written with the same number of characters, all at once."""

import re
from typing import Any

_DIRECTIVE = re.compile("%(.)|(.)", re.DOTALL)
_WIDTHS = {"Y": 4, "m": 2, "d": 2, "H": 2, "M": 2, "S": 2}
_UPPER = {"m": 12, "d": 31, "H": 23, "M": 59, "S": 59}
_FIRST_YEAR, _LAST_YEAR = 1678, 2261
"""The years that nanoseconds in 64 bits cover from their first day to their last."""
_DIGITS_OF_NANOSECONDS = 9
_MOST_DIGITS = 18
"""So many fit into 64 bits, whichever they are."""


def parse(texts: Any, form: str) -> Any:
    """The texts of an Arrow array as an array of times in ns, UTC. None: they differ in length, or from the form's.

    A text that doesn't fit is NaT; it may have the form nevertheless, with blanks around it, for instance.
    """
    import numpy as np

    filled = _matrix(texts)
    if filled is None:
        return None
    text, valid = filled
    places = _places(form, text)
    if places is None:
        return None
    fits = np.ones(len(text), dtype=bool)
    numbers = {}
    for name, begin, end in places:
        if len(name) > 1:
            fits &= text[:, begin] == ord(name[1])
        else:
            numbers[name] = _number(text[:, begin:end], fits)
            if name == "f":
                numbers[name] *= 10 ** (_DIGITS_OF_NANOSECONDS - (end - begin))
    fits &= (numbers["Y"] >= _FIRST_YEAR) & (numbers["Y"] <= _LAST_YEAR) & (numbers["m"] > 0) & (numbers["d"] > 0)
    for name, upper in _UPPER.items():
        if name in numbers:
            fits &= numbers[name] <= upper
    months = (numbers["Y"] * 12 + numbers["m"] - (1970 * 12 + 1)).astype("datetime64[M]")
    days = months.astype("datetime64[D]") + (numbers["d"] - 1).astype("timedelta64[D]")
    fits &= days.astype("datetime64[M]") == months
    days[~fits] = np.datetime64("NaT")
    times = days.astype("datetime64[ns]")
    if "H" in numbers:
        seconds = numbers["H"] * 3600 + numbers.get("M", 0) * 60 + numbers.get("S", 0)
        times += (seconds * 1_000_000_000 + numbers.get("f", 0)).astype("timedelta64[ns]")
    if valid is None:
        return times
    values = np.full(len(texts), np.datetime64("NaT", "ns"))
    values[valid] = times
    return values


def digits_of(texts: Any) -> Any:
    """The texts of an Arrow array as whole numbers. None: they differ in length, or one is no plain number.

    This takes a third of the time of a cast that must be checked for other spellings.
    """
    import numpy as np

    filled = _matrix(texts) if len(texts) and not texts.null_count else None
    if filled is None:
        return None
    text, _ = filled
    width = text.shape[1]
    if width > _MOST_DIGITS or (width > 1 and text[:, 0].min() == ord("0")):
        return None
    fits = np.ones(len(text), dtype=bool)
    numbers = _number(text, fits)
    return numbers if fits.all() else None


def _matrix(texts: Any) -> Any:
    """The texts, each a row of bytes, and which of them are not null (None: all); None when they differ in length."""
    import numpy as np

    buffers = texts.buffers()
    offsets = np.frombuffer(buffers[1], dtype=np.int32)[texts.offset : texts.offset + len(texts) + 1]
    lengths = np.diff(offsets)
    valid = texts.is_valid().to_numpy(zero_copy_only=False) if texts.null_count else None
    valid_lengths = lengths if valid is None else lengths[valid]
    if (
        not len(valid_lengths)
        or valid_lengths[0] == 0
        or np.any(valid_lengths != valid_lengths[0])
        or offsets[-1] - offsets[0] != valid_lengths[0] * len(valid_lengths)
    ):
        return None
    text = np.frombuffer(buffers[2], dtype=np.uint8)[offsets[0] : offsets[-1]]
    return text.reshape(len(valid_lengths), valid_lengths[0]), valid


def _places(form: str, text: Any) -> list[tuple[str, int, int]] | None:
    """Return where in such texts each part of a form is: a directive, or `=` and a character.

    None: they can't have the form, or it has parts of other widths.
    """
    import numpy as np

    if form.endswith("%z") and np.all(text[:, -1] == ord("Z")):
        form = form.removesuffix("%z") + "Z"
    parts = [directive or f"={literal}" for directive, literal in _DIRECTIVE.findall(form)]
    length = text.shape[1]
    fraction = length - sum(_WIDTHS.get(part, 1) for part in parts if part != "f")
    places = []
    at = 0
    for part in parts:
        if part not in _WIDTHS and part != "f" and not part.startswith("="):
            return None
        end = at + (fraction if part == "f" else _WIDTHS.get(part, 1))
        places.append((part, at, end))
        at = end
    names = [part for part in parts if not part.startswith("=")]
    is_known = len(set(names)) == len(names) and {"Y", "m", "d"} <= set(names)
    is_fraction = 1 <= fraction <= _DIGITS_OF_NANOSECONDS if "f" in parts else fraction == 0
    return places if is_known and is_fraction and form.isascii() else None


def _number(digits: Any, fits: Any) -> Any:
    """Digits as numbers; clears `fits` where a character is not a digit."""
    import numpy as np

    number = np.zeros(len(digits), dtype=np.int64)
    for column in digits.T:
        digit = column - np.uint8(ord("0"))
        fits &= digit < 10
        number = number * 10 + digit
    return number
