"""Arrow's columns of text to columns of a kind: what conversion.py does, only faster.

Most values of a column look alike, and those are converted all at once; the others are converted value by value, by
conversion.py itself.
"""

from typing import Any

from parallelrun_worker.tables import fixed_dates
from parallelrun_worker.tables.conversion import convert, words_of
from parallelrun_worker.tables.inference import Kind

_SAMPLE = 4096
_BLANKS = " \t"
_INT = "^-?[0-9]{1,18}$"
_FLOAT = r"^-?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$"


def type_of(kind: Kind) -> Any:
    """The type that Arrow's parser should give a column; text if it would accept what isn't a value of the kind."""
    import pyarrow as pa

    match kind:
        case {"kind": "float"}:
            return pa.float64()
        case {"kind": "bool"} if words_of(kind) == words_of({"kind": "bool"}):
            return pa.bool_()
        case {"kind": "datetime", "formats": ["%Y-%m-%d"]}:
            return pa.date32()
        case _:
            return pa.string()


def converted(column: Any, kind: Kind) -> Any:
    """A column (an Arrow ChunkedArray) as a column of this kind, for a DataFrame."""
    import pyarrow as pa

    if pa.types.is_date32(column.type):
        return _days(column)
    if not pa.types.is_string(column.type):
        return column.to_numpy(zero_copy_only=False)
    return _READERS.get(kind["kind"], _objects)(column, kind)


def _objects(texts: Any, _kind: Kind | None = None) -> Any:
    import numpy as np
    import pandas as pd

    parts = [_objects_of(chunk) for chunk in texts.chunks]
    return pd.Series(np.concatenate(parts) if len(parts) != 1 else parts[0], dtype=object)


def _objects_of(chunk: Any) -> Any:
    """Texts that repeat are created once: that takes less time, and much less memory."""
    import numpy as np

    if not _repeats(chunk):
        return chunk.to_numpy(zero_copy_only=False)
    encoded = chunk.dictionary_encode()
    each = np.append(encoded.dictionary.to_numpy(zero_copy_only=False), np.array([None], dtype=object))
    return each[encoded.indices.fill_null(len(each) - 1).to_numpy(zero_copy_only=False)]


def _repeats(chunk: Any) -> bool:
    sample = chunk[:_SAMPLE]
    return 2 * len(sample.unique()) < len(sample)


def _slowly(texts: Any, kind: Kind) -> Any:
    return convert(_objects(texts), kind)


def _cast(texts: Any, type_: Any) -> Any:
    import pyarrow as pa

    try:
        return texts.cast(type_)
    except pa.ArrowInvalid:
        return None


def _ints(texts: Any, kind: Kind) -> Any:
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    whole = None if _may_be_hexadecimal(texts) else _cast(texts, pa.int64())
    if whole is not None:
        return whole.to_numpy(zero_copy_only=False)
    trimmed = pc.ascii_trim(texts, _BLANKS)
    fits = pc.match_substring_regex(trimmed, _INT)
    unfit = np.flatnonzero(pc.invert(fits).fill_null(fill_value=False))
    late = _slowly(texts.take(unfit), kind).to_numpy()
    numbers = pc.if_else(fits, trimmed, None).cast(pa.int64())
    if not texts.null_count and late.dtype.kind == "i":
        values = numbers.fill_null(0).to_numpy(zero_copy_only=False).copy()
    else:
        values = numbers.to_numpy(zero_copy_only=False).astype("float64")
    values[unfit] = late
    return values


def _may_be_hexadecimal(texts: Any) -> bool:
    """Whether there is a letter: `0x1F` is a number for Arrow, but not in a table."""
    import numpy as np

    buffers = [chunk.buffers()[2] for chunk in texts.chunks]
    return any(np.frombuffer(text, dtype=np.uint8).max(initial=0) > ord("9") for text in buffers if text is not None)


def _floats(texts: Any, kind: Kind) -> Any:
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    numbers = _cast(texts, pa.float64())
    if numbers is not None:
        return numbers.to_numpy(zero_copy_only=False)
    trimmed = pc.ascii_trim(texts, _BLANKS)
    fits = pc.match_substring_regex(trimmed, _FLOAT)
    unfit = np.flatnonzero(pc.invert(fits).fill_null(fill_value=False))
    values = pc.if_else(fits, trimmed, None).cast(pa.float64()).to_numpy(zero_copy_only=False).copy()
    values[unfit] = _slowly(texts.take(unfit), kind).to_numpy()
    return values


def _bools(texts: Any, kind: Kind) -> Any:
    import numpy as np
    import pandas as pd
    import pyarrow as pa
    import pyarrow.compute as pc

    words = {word: truth for word, truth in words_of(kind).items() if word == word.strip()}
    at = pc.index_in(texts, value_set=pa.array(list(words), pa.string()))
    if not at.null_count:
        return np.array(list(words.values()), dtype=bool)[at.to_numpy(zero_copy_only=False)]
    known = at.is_valid().to_numpy()
    values = np.full(len(texts), None, dtype=object)
    values[known] = np.array(list(words.values()), dtype=object)[at.drop_null().to_numpy(zero_copy_only=False)]
    unfit = np.flatnonzero(~known & texts.is_valid().to_numpy())
    values[unfit] = _slowly(texts.take(unfit), kind).to_numpy(dtype=object)
    is_whole = all(value is not None for value in values)
    return pd.Series(values, dtype=bool if is_whole else object)


def _dates(texts: Any, kind: Kind) -> Any:
    import numpy as np

    if not kind.get("formats"):
        return _slowly(texts, kind)
    parts = [_dates_of(chunk, kind) for chunk in texts.chunks]
    return np.concatenate(parts) if len(parts) != 1 else parts[0]


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


def _days(days: Any) -> Any:
    """Days as times; null for days that nanoseconds can't represent."""
    import numpy as np

    values = days.to_numpy(zero_copy_only=False).copy()
    values[(values < np.datetime64("1677-09-22")) | (values > np.datetime64("2262-04-11"))] = np.datetime64("NaT")
    return values.astype("datetime64[ns]")


def _each_once(texts: Any, kind: Kind) -> Any:
    import numpy as np
    import pandas as pd

    encoded = texts.dictionary_encode()
    different = pd.Series(encoded.dictionary.to_numpy(zero_copy_only=False), dtype=object)
    each = np.append(convert(different, kind).to_numpy(), np.datetime64("NaT", "ns"))
    return each[encoded.indices.fill_null(len(each) - 1).to_numpy(zero_copy_only=False)]


_READERS = {"int": _ints, "float": _floats, "bool": _bools, "datetime": _dates}
