"""Values of partition keys as texts, and as bytes whose order is that of the keys.

Values are the same when their texts are and they are of one kind: 1 and 1.0, but not 1 and "1" or True.
"""

from collections.abc import Iterable
from typing import Any

from parallelrun_worker.tables.steps import text_of

_MOST_KNOWN = 1 << 17
_KINDS: dict[type, bytes] = {str: b"s", bool: b"b", int: b"n", float: b"n"}


class KeyTexts:
    """Turns values into sortable bytes: null first, then by text, as in a table that is partitioned on disk."""

    def __init__(self) -> None:
        self._known: dict[tuple[type, Any], bytes] = {}

    def of_column(self, column: Any, name: str) -> list[bytes]:
        """For each value of a column.

        Raises:
            ValueError: it holds lists or objects.
        """
        return [
            b"\0" if is_null else self._of(value, name)
            for value, is_null in zip(column.tolist(), column.isna().tolist(), strict=True)
        ]

    def _of(self, value: Any, name: str) -> bytes:
        try:
            text = self._known.get((type(value), value))
        except TypeError:
            raise ValueError(
                f"the column {name!r} holds lists or objects, by which rows can't be grouped; keys are plain values"
            ) from None
        if text is None:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            text = self._known[type(value), value] = sortable(
                text_of(value), _KINDS.get(type(value)) or type(value).__name__.encode()
            )
        return text


def sortable(text: str | None, kind: bytes = b"s") -> bytes:
    """Return a value as bytes that sort as it does; several of them in a row sort by the first, then by the second."""
    if text is None:
        return b"\0"
    return b"\1" + text.encode("utf-8", "surrogatepass").replace(b"\0", b"\0\xff") + b"\0\1" + kind + b"\0\1"


def texts_of(key: bytes, count: int) -> list[str | None]:
    """The texts of `count` values in a row."""
    texts: list[str | None] = []
    at = 0
    for _ in range(count):
        if key[at] == 0:
            texts.append(None)
            at += 1
            continue
        end = key.index(b"\0\1", at + 1)
        text = key[at + 1 : end].replace(b"\0\xff", b"\0")
        texts.append(text.decode("utf-8", "surrogatepass").encode("utf-8", "replace").decode())
        at = key.index(b"\0\1", end + 2) + 2
    return texts


def joined(columns: Iterable[list[bytes]]) -> list[bytes]:
    """The keys of rows, from their values column by column."""
    first, *others = columns
    return [b"".join(values) for values in zip(first, *others, strict=True)] if others else first
