"""The types that Arrow's parser of delimited text should give the columns of a table."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from parallelrun_worker.tables.conversion import words_of
from parallelrun_worker.tables.inference import FALSE_SPELLINGS, FALSE_WORDS, TRUE_SPELLINGS, TRUE_WORDS, Kind
from parallelrun_worker.tables.values import Values

NON_TEXT_KINDS = ("int", "float", "bool", "datetime")


class TruthWords(NamedTuple):
    """The words that Arrow's parser takes for true, and for false: it has one list for all columns."""

    true: Sequence[str]
    false: Sequence[str]


def truth_words(kinds: list[Kind], values: Values | None) -> TruthWords:
    """The words that Arrow's parser should know for columns of these kinds.

    Args:
        values: rules for odd values, by which words other than true and false may be kept; None: there are none.
    """
    if values is None:
        return TruthWords(TRUE_WORDS, FALSE_WORDS)
    are_read = not values.is_exact and any(kind["kind"] == "bool" and "odd" in kind for kind in kinds)
    return TruthWords(TRUE_WORDS, FALSE_WORDS) if are_read else TruthWords(TRUE_SPELLINGS, FALSE_SPELLINGS)


def type_of(kind: Kind, words: TruthWords, values: Values | None, *, has_plain_ints: bool = False) -> Any:
    """The type that Arrow's parser should give a column; text if it would accept what isn't a value of the kind.

    Args:
        values: as in `truth_words`.
        has_plain_ints: no field is a whole number that is written in an odd way (`may_have_odd_ints`).
    """
    import pyarrow as pa

    match kind:
        case {"kind": "float"} if "odd" not in kind:
            return pa.float64()
        case {"kind": "int"} if has_plain_ints:
            return pa.int64()
        case {"kind": "bool"} if _are_words_of(kind, words, is_strict=values is not None):
            return pa.bool_()
        case {"kind": "datetime", "formats": ["%Y-%m-%d"]}:
            return pa.date32()
        case _:
            return text_type_of(kind, values)


def text_type_of(kind: Kind, values: Values | None) -> Any:
    """The type of a column that Arrow's parser should read as text: for texts in pandas' own dtype the one that it
    holds, so that nothing has to be cast.
    """
    import pyarrow as pa

    is_final = values is not None and values.text_dtype is not None and kind["kind"] not in NON_TEXT_KINDS
    return pa.large_string() if is_final else pa.string()


def _are_words_of(kind: Kind, words: TruthWords, *, is_strict: bool) -> bool:
    """Return whether all words that Arrow's parser takes for truth values are, and mean the same in this column."""
    if is_strict and words.true == TRUE_WORDS and not ("odd" in kind or "declared" in kind):
        return False
    truth_by_word = words_of(kind)
    return all(truth_by_word.get(word) is True for word in words.true) and all(
        truth_by_word.get(word) is False for word in words.false
    )


def is_text(type_: Any) -> bool:
    """Return whether a type of Arrow is one of texts, as its parser gives it to a column here."""
    import pyarrow as pa

    return bool(pa.types.is_string(type_) or pa.types.is_large_string(type_))
