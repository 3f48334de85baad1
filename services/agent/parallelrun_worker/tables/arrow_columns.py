"""Arrow's columns of text to columns of a kind: what values.py and conversion.py do, only faster.

Most values of a column look alike, and those are converted all at once; the others are converted value by value.
"""

from typing import Any

from parallelrun_worker.tables import fixed_dates
from parallelrun_worker.tables.arrow_types import is_text
from parallelrun_worker.tables.conversion import convert, words_of
from parallelrun_worker.tables.inference import FALSE_SPELLINGS, TRUE_SPELLINGS, Kind
from parallelrun_worker.tables.values import EXACT_IN_FLOAT, ColumnValues, assembled

_SAMPLE = 4096
FEW = 1000
"""Up to so many texts, nothing is gained by creating those that repeat once."""
_BLANKS = " \t"
_INT = "^-?[0-9]{1,18}$"
_PLAIN_INT = "^(?:0|-?[1-9][0-9]{0,17})$"
_FLOAT = r"^-?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$"
_PLAIN_FLOAT = (
    r"^(?:0|-?[1-9][0-9]{0,14}|-?(?:0|[1-9][0-9]{0,14})\.[0-9]*(?:[eE][+-]?[0-9]{1,2})?"
    r"|-?\.[0-9]+(?:[eE][+-]?[0-9]{1,2})?)$"
)
"""Those that are read alike by all rules; `-0` is not, which another text stands for."""
_ZERO, _NINE, _MINUS = ord("0"), ord("9"), ord("-")
_NEWLINE = ord("\n")
_DAY_NS = 86_400_000_000_000


def may_be_inexact(column: Any) -> bool:
    """Return whether a column of floats has a number that a float doesn't have exactly, or that is
    too large for one.
    """
    import pyarrow as pa

    return pa.types.is_floating(column.type) and not all(map(_are_below_2_to_53, column.chunks))


def has_nan(column: Any) -> bool:
    """Return whether a column of floats has NaN."""
    import pyarrow as pa
    import pyarrow.compute as pc

    return pa.types.is_floating(column.type) and bool(pc.any(pc.is_nan(column)).as_py())


def _are_below_2_to_53(chunk: Any) -> bool:
    """Return whether all numbers of a chunk are, and their negatives; NaN and null count as such."""
    import pyarrow.compute as pc

    if not chunk.null_count and len(chunk):  # NumPy needs a quarter of the time
        numbers = chunk.to_numpy()
        if numbers.min() > -EXACT_IN_FLOAT and numbers.max() < EXACT_IN_FLOAT:  # not of NaN
            return True
    extremes = pc.min_max(chunk).as_py()
    low, high = extremes["min"], extremes["max"]
    return low is None or -EXACT_IN_FLOAT < low <= high < EXACT_IN_FLOAT


def may_hold_newlines(column: Any) -> bool:
    """Return whether a text of a column (an Arrow ChunkedArray) holds a newline, or a character below it."""
    import numpy as np

    if not is_text(column.type):
        return False
    texts = (np.frombuffer(data, dtype=np.uint8) for chunk in column.chunks if (data := chunk.buffers()[2]) is not None)
    return any(text.min(initial=_NINE) <= _NEWLINE for text in texts)  # the least takes a tenth of a comparison


def converted(column: Any, kind: Kind, values: ColumnValues | None = None) -> Any:
    """A column (an Arrow ChunkedArray) as a column of this kind, for a DataFrame.

    Args:
        values: reads those that are odd for the column; None: as earlier releases did.

    Raises:
        BadValue: one doesn't fit, and the table refuses it.
    """
    import pyarrow as pa

    if pa.types.is_date32(column.type):
        return _days(column, values)
    if pa.types.is_boolean(column.type) and values is not None and values.is_flagged and not values.is_exact:
        _note_words(column, values)
    if pa.types.is_int64(column.type):
        return _whole(column)
    if not is_text(column.type):
        return column.to_numpy(zero_copy_only=False)
    return _READERS.get(kind["kind"], _texts)(column, kind, values)


def _note_words(column: Any, values: ColumnValues) -> None:
    """Note that all words of a column were read as true and false, since its first ones were such words."""
    present = len(column) - column.null_count
    if present:
        first = column.is_valid().index(True).as_py()
        values.note_all(first, values.kind["example"], "and the like were read as true and false", present)


def _texts(texts: Any, _kind: Kind, values: ColumnValues | None) -> Any:
    return texts_of_arrow(texts, None if values is None else values.text_dtype)


def texts_of_arrow(texts: Any, dtype: Any) -> Any:
    """A column of texts (an Arrow ChunkedArray, also of dictionaries) as an array of this dtype; None: of objects."""
    return text_objects(texts) if dtype is None else dtype.__from_arrow__(texts)


def text_objects(texts: Any) -> Any:
    """A column of texts (an Arrow ChunkedArray, also of dictionaries) as an array of `str` and None.

    Texts that repeat are created once: that takes less time, and much less memory.
    """
    import numpy as np
    import pyarrow as pa

    if pa.types.is_dictionary(texts.type):
        parts = [_created_once(chunk) for chunk in texts.chunks] or [np.empty(0, dtype=object)]
    elif _repeats(next((chunk for chunk in texts.chunks if len(chunk) >= FEW), None)):
        parts = [_created_once(chunk.dictionary_encode()) for chunk in texts.chunks]
    else:
        return texts.to_numpy(zero_copy_only=False)
    return np.concatenate(parts) if len(parts) != 1 else parts[0]


def _created_once(encoded: Any) -> Any:
    import numpy as np

    each = np.append(encoded.dictionary.to_numpy(zero_copy_only=False), np.array([None], dtype=object))
    numbers = encoded.indices.fill_null(len(each) - 1) if encoded.null_count else encoded.indices
    return each.take(numbers.to_numpy(zero_copy_only=False), mode="clip")  # all are in range: it need not look


def _repeats(chunk: Any) -> bool:
    if chunk is None:
        return False
    sample = chunk[:_SAMPLE]
    return 4 * len(sample.unique()) < len(sample)


def _slowly(texts: Any, kind: Kind) -> Any:
    import pandas as pd

    return convert(pd.Series(text_objects(texts), dtype=object), kind)


def _cast(texts: Any, type_: Any) -> Any:
    import pyarrow as pa

    try:
        return texts.cast(type_)
    except pa.ArrowInvalid:
        return None


def _ints(texts: Any, kind: Kind, values: ColumnValues | None) -> Any:
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    parts = [*map(fixed_dates.digits_of, texts.chunks)]
    if parts and all(part is not None for part in parts):
        return np.concatenate(parts) if len(parts) != 1 else parts[0]
    whole = None if _may_be_hexadecimal(texts) else _cast(texts, pa.int64())
    if whole is not None and (values is None or _are_canonical(texts, whole)):
        return whole.to_numpy(zero_copy_only=False) if values is None else _whole(whole)
    trimmed = pc.ascii_trim(texts, _BLANKS)
    fits = pc.match_substring_regex(trimmed, _INT if values is None else _PLAIN_INT)
    unfit = np.flatnonzero(pc.invert(fits).fill_null(fill_value=False))
    numbers = pc.if_else(fits, trimmed, None).cast(pa.int64())
    if values is not None:
        return _with_others(numbers, unfit, values.read(texts.take(unfit).to_pylist(), unfit.tolist()), kind)
    late = _slowly(texts.take(unfit), kind).to_numpy()
    if not texts.null_count and late.dtype.kind == "i":
        read = numbers.fill_null(0).to_numpy(zero_copy_only=False).copy()
    else:
        read = numbers.to_numpy(zero_copy_only=False).astype("float64")
    read[unfit] = late
    return read


def _with_others(numbers: Any, places: Any, others: list[Any], kind: Kind) -> Any:
    """Numbers (an Arrow ChunkedArray), with other values of Python at some places."""
    import numpy as np

    read = numbers.to_numpy(zero_copy_only=False)
    is_float = kind["kind"] == "float"
    number_type = float if is_float else int
    if all(type(other) is number_type for other in others) and (is_float or numbers.null_count == len(places)):
        read = numbers.fill_null(0).to_numpy(zero_copy_only=False).copy() if not is_float else read.copy()
        try:
            read[places] = np.array(others, dtype=read.dtype)
        except OverflowError:  # beyond 64 bits
            pass
        else:
            return read
    each = numbers.to_pylist()
    for place, other in zip(places.tolist(), others, strict=True):
        each[place] = other
    return assembled(kind, each)


def _whole(numbers: Any) -> Any:
    """A column of Arrow's int64 as one of pandas that has each number exactly."""
    import pandas as pd

    if not numbers.null_count or _are_exact_in_float(numbers):
        return numbers.to_numpy(zero_copy_only=False)
    return pd.Series(numbers.to_pylist(), dtype="Int64")


def may_have_odd_ints(data: bytes, mark: bytes) -> bool:
    """Return whether a field of a text may be a whole number with leading zeros, in hexadecimal, or -0."""
    import numpy as np

    text = np.frombuffer(data, dtype=np.uint8)
    zeros = np.flatnonzero(text == _ZERO)
    follows = text.take(zeros + 1, mode="clip")
    zeros = zeros[
        ((follows >= _ZERO) & (follows <= _NINE)) | (follows | 0x20 == ord("x")) | (text[zeros - 1] == _MINUS)
    ]
    begins = np.where(text[zeros - 1] == _MINUS, zeros - 2, zeros - 1)
    return bool(np.isin(text.take(begins), [*mark, *b'\n\r" \t']).any() or (begins < 0).any())


def _are_canonical(texts: Any, numbers: Any) -> bool:
    """Return whether each text is its number as Python writes it: any other spelling of it is longer.

    Args:
        texts: an Arrow ChunkedArray.
        numbers: the same in int64.
    """
    import numpy as np

    text_bytes = digits = 0
    for text in texts.chunks:
        offsets = np.frombuffer(text.buffers()[1], dtype=np.int32)
        text_bytes += int(offsets[text.offset + len(text)] - offsets[text.offset])
    if text_bytes == len(texts) - texts.null_count:  # each is one digit
        return True
    for number in numbers.chunks:
        values = (number.fill_null(0) if number.null_count else number).to_numpy()
        negative = np.count_nonzero(values < 0)
        values = np.abs(values) if negative else values
        digits += len(values) - number.null_count + negative
        highest, power = int(values.max(initial=0)), 10
        while power <= highest:
            digits += np.count_nonzero(values >= power)
            power *= 10
    return bool(text_bytes == digits)


def _are_exact_in_float(numbers: Any) -> bool:
    import pyarrow.compute as pc

    extremes = pc.min_max(numbers).as_py()
    return extremes["min"] is None or (extremes["min"] >= -EXACT_IN_FLOAT and extremes["max"] <= EXACT_IN_FLOAT)


def _may_be_hexadecimal(texts: Any) -> bool:
    """Return whether there is a letter: `0x1F` is a number for Arrow, but not in a table."""
    import numpy as np

    buffers = [chunk.buffers()[2] for chunk in texts.chunks]
    return any(np.frombuffer(text, dtype=np.uint8).max(initial=0) > _NINE for text in buffers if text is not None)


def _floats(texts: Any, kind: Kind, values: ColumnValues | None) -> Any:
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    numbers = None if values is not None and values.is_flagged else _cast(texts, pa.float64())
    if numbers is not None and (values is None or not (may_be_inexact(numbers) or has_nan(numbers))):
        return numbers.to_numpy(zero_copy_only=False)
    trimmed = pc.ascii_trim(texts, _BLANKS)
    fits = pc.match_substring_regex(trimmed, _FLOAT if values is None else _PLAIN_FLOAT)
    unfit = np.flatnonzero(pc.invert(fits).fill_null(fill_value=False))
    numbers = pc.if_else(fits, trimmed, None).cast(pa.float64())
    if values is not None:
        return _with_others(numbers, unfit, values.read(texts.take(unfit).to_pylist(), unfit.tolist()), kind)
    read = numbers.to_numpy(zero_copy_only=False).copy()
    read[unfit] = _slowly(texts.take(unfit), kind).to_numpy()
    return read


def _bools(texts: Any, kind: Kind, values: ColumnValues | None) -> Any:
    import numpy as np
    import pandas as pd
    import pyarrow as pa
    import pyarrow.compute as pc

    words = {word: truth for word, truth in words_of(kind).items() if word == word.strip()}
    if values is not None and not kind.get("declared"):
        words = {word: truth for word, truth in words.items() if word in TRUE_SPELLINGS + FALSE_SPELLINGS}
    at = pc.index_in(texts, value_set=pa.array(list(words), pa.string()))
    if not at.null_count:
        return np.array(list(words.values()), dtype=bool)[at.to_numpy(zero_copy_only=False)]
    is_valid = at.is_valid().to_numpy()
    read = np.full(len(texts), None, dtype=object)
    read[is_valid] = np.array(list(words.values()), dtype=object)[at.drop_null().to_numpy(zero_copy_only=False)]
    unfit = np.flatnonzero(~is_valid & texts.is_valid().to_numpy())
    if values is not None:
        read[unfit] = np.array(values.read(texts.take(unfit).to_pylist(), unfit.tolist()), dtype=object)
    else:
        read[unfit] = _slowly(texts.take(unfit), kind).to_numpy(dtype=object)
    is_whole = all(isinstance(value, bool) for value in read)
    return pd.Series(read, dtype=bool if is_whole else object)


def _dates(texts: Any, kind: Kind, values: ColumnValues | None) -> Any:
    import numpy as np
    import pandas as pd

    if not kind.get("formats"):
        if values is not None:
            return values.dates(pd.Series(texts.to_pylist(), dtype=object), range(len(texts)))
        return _slowly(texts, kind)
    parts = [_dates_of(chunk, kind) for chunk in texts.chunks]
    dates = np.concatenate(parts) if len(parts) != 1 else parts[0]
    return _checked(dates, texts, values)


def _checked(dates: Any, texts: Any, values: ColumnValues | None) -> Any:
    """Dates (an array), where those that are null in spite of their texts become what the table says."""
    import numpy as np
    import pandas as pd

    if values is None:
        return dates
    null = np.isnat(dates)
    if not null.any():
        return dates
    odd = np.flatnonzero(null & texts.is_valid().to_numpy())
    if not len(odd):
        return dates
    words = dict(zip(odd.tolist(), map(str, texts.take(odd).to_pylist()), strict=True))
    return values.with_odd_dates(pd.Series(dates), words, range(len(dates)), odd.tolist())


def _dates_of(texts: Any, kind: Kind) -> Any:
    """The dates of one chunk. Without a common form, each distinct text is converted once."""
    import numpy as np

    formats = kind["formats"]
    values = fixed_dates.parse(texts, formats[0]) if len(formats) == 1 and not _repeats(texts) else None
    if values is None:
        return _each_once(texts, kind)
    unfit = np.flatnonzero(np.isnat(values) & texts.is_valid().to_numpy(zero_copy_only=False))
    if len(unfit):
        values[unfit] = _each_once(texts.take(unfit), kind)
    return values


def _days(days: Any, values: ColumnValues | None) -> Any:
    """Days as times; those that nanoseconds can't represent are null, or what the table says."""
    import numpy as np

    first, last = np.datetime64("1677-09-22"), np.datetime64("2262-04-11")
    read = days.to_numpy(zero_copy_only=False)
    if len(read) and first <= read.min() and read.max() <= last:  # not of NaT
        return (read.view(np.int64) * _DAY_NS).view("datetime64[ns]")  # a fifth of the time of `astype`
    read = read.copy()
    read[(read < first) | (read > last)] = np.datetime64("NaT")
    return _checked(read.astype("datetime64[ns]"), days, values)


def _each_once(texts: Any, kind: Kind) -> Any:
    import numpy as np
    import pandas as pd

    encoded = texts.dictionary_encode()
    different = pd.Series(encoded.dictionary.to_numpy(zero_copy_only=False), dtype=object)
    each = np.append(convert(different, kind).to_numpy(), np.datetime64("NaT", "ns"))
    return each[encoded.indices.fill_null(len(each) - 1).to_numpy(zero_copy_only=False)]


_READERS = {"int": _ints, "float": _floats, "bool": _bools, "datetime": _dates}
