"""What is said of tables whose rows nobody has counted yet."""

from __future__ import annotations

import pytest

from parallelrun_core.wire.message import Piece
from parallelrun_master.planning.amount import TableAmount

LATER = "whose rows are counted as they are read"


@pytest.mark.parametrize("items, rows, sizes, words, total", [
    (0, [], [], "0 items", "0"),
    (7000, [], [], "7,000 items", "7000"),
    (0, [(0, 500), (500, 1000)], [], "1,000 rows", "1000"),
    (0, [], [(0, 4096), (4096, 5000)], f"5,000 bytes of tables {LATER}", "unknown, total_bytes 5000"),
    (0, [], [(0, -1)], f"tables {LATER}", "unknown, total_bytes 0"),
    (3, [(0, 9)], [(0, -1)], f"3 items and 9 rows and more tables {LATER}", "unknown, total_bytes 0"),
])  # fmt: skip
def test_an_amount_is_never_none_where_there_are_tables(
    items: int, rows: list[tuple[int, int]], sizes: list[tuple[int, int]], words: str, total: str
) -> None:
    amount = TableAmount()
    amount.add([Piece(b"/a", *each) for each in rows], counts_rows=True)
    amount.add([Piece(b"/a", *each) for each in sizes], counts_rows=False)
    assert (amount.words(items), amount.total(items)) == (words, total)


def test_ranges_of_bytes_whose_rows_are_counted_add_up_to_rows() -> None:
    amount = TableAmount()
    amount.add([Piece(b"/a.csv", 0, 4096, rows=100), Piece(b"/a.csv", 4096, 5000, rows=23)], counts_rows=False)
    assert (amount.words(0), amount.total(0)) == ("123 rows", "123")
