"""Rows that are kept while the failed items of a mini-batch are run again."""

from __future__ import annotations

import pytest

from parallelrun_worker.rows.kept_rows import ItemRange, Patch, split
from parallelrun_worker.rows.returned import BadReturn, Rendered
from parallelrun_worker.rows.text import HEADER_LENGTH, Lines


def render(values: list[int]) -> Rendered:
    return Lines(" ", headed=False, safe=False).render(values)


def headed(header: bytes, data: bytes) -> bytes:
    return HEADER_LENGTH.pack(len(header)) + header + data


def patched(good: list[tuple[ItemRange, list[int]]]) -> Rendered:
    kept = split(b"0\n1\n4\n6\n", 4, "text")
    assert kept is not None
    return Patch(kept, "text", [ItemRange(5, 1), ItemRange(2, 2)], good).render(render)


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
    assert split(data, 4, row_format) is None


def test_kept_rows_have_one_header_and_refuse_another() -> None:
    kept = split(headed(b"a,b\n", b"0,0\n2,2\n"), 2, "headed")
    assert kept is not None

    def one(header: bytes) -> Rendered:
        return Patch(kept, "headed", [ItemRange(1, 1)], [(ItemRange(1, 1), [1])]).render(
            lambda _: Rendered(headed(header, b"1,1\n"), 1)
        )

    assert one(b"a,b\n") == Rendered(headed(b"a,b\n", b"0,0\n1,1\n2,2\n"), 3)
    with pytest.raises(BadReturn, match="other columns"):
        one(b"a,c\n")
