"""Rows that are kept while the failed items of a mini-batch are run again."""

from __future__ import annotations

import pandas as pd
import pytest

from parallelrun_worker.rows import RowRenderer, renderer
from parallelrun_worker.rows.formats.text import HEADER_LENGTH
from parallelrun_worker.rows.kept_rows import ItemRange, Patch, split
from parallelrun_worker.rows.returned import BadReturn, Rendered


def rows(row_format: str, *, header: bool = False) -> RowRenderer:
    return renderer({"format": row_format, "header": header, "separator": " ", "safe": False})


def headed(header: bytes, data: bytes) -> bytes:
    return HEADER_LENGTH.pack(len(header)) + header + data


def patched(good: list[tuple[ItemRange, list[int]]]) -> Rendered:
    kept = split(b"0\n1\n4\n6\n", 4, 0)
    assert kept is not None
    return Patch(kept, [ItemRange(5, 1), ItemRange(2, 2)], good).render(rows("text"))


def test_kept_rows_have_the_new_ones_at_their_places() -> None:
    assert patched([(ItemRange(2, 2), [2, 3]), (ItemRange(5, 1), [5])])[:2] == (b"0\n1\n2\n3\n4\n5\n6\n", 7)


def test_kept_rows_stay_where_items_fail_again() -> None:
    assert patched([(ItemRange(3, 1), [3])])[:2] == (b"0\n1\n3\n4\n6\n", 5)
    assert patched([])[:2] == (b"0\n1\n4\n6\n", 4)


@pytest.mark.parametrize(
    "data, row_format",
    [(b'0\n"1\n1"\n4\n6\n', "text"), (b"0\n1\n", "text"), (b"0\n1\n4\n6", "jsonl"), (b"", "text"), (b"x", "parquet")],
)
def test_kept_rows_that_cannot_be_told_apart(data: bytes, row_format: str) -> None:
    assert split(data, 4, rows(row_format).header_bytes(data)) is None


def test_kept_rows_have_one_header_and_refuse_another() -> None:
    lines, segment = rows("text", header=True), headed(b"a b\n", b"0 0\n2 2\n")
    kept = split(segment, 2, lines.header_bytes(segment))
    assert kept is not None

    def one(*names: str) -> Rendered:
        return Patch(kept, [ItemRange(1, 1)], [(ItemRange(1, 1), pd.DataFrame([[1, 1]], columns=names))]).render(lines)

    assert one("a", "b") == Rendered(headed(b"a b\n", b"0 0\n1 1\n2 2\n"), 3)
    with pytest.raises(BadReturn, match="other columns"):
        one("a", "c")
