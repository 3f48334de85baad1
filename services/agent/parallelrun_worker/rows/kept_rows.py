"""Rows of a mini-batch that are kept while its failed items are run again: the new ones are put between them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, NamedTuple

from parallelrun_worker.rows import RowRenderer
from parallelrun_worker.rows.returned import BadReturn, Rendered


class ItemRange(NamedTuple):
    """Consecutive items of a mini-batch."""

    first: int
    items: int

    def halves(self) -> tuple[ItemRange, ItemRange]:
        """Return its first half, which is the smaller one, and the rest."""
        half = self.items // 2
        return ItemRange(self.first, half), ItemRange(self.first + half, self.items - half)

    def has(self, other: ItemRange) -> bool:
        """Return whether all items of another part are in this one."""
        return self.first <= other.first and other.first + other.items <= self.first + self.items


class KeptRows(NamedTuple):
    """The rows of all items but some."""

    head: bytes
    """Header of the segment; empty if it has none."""
    lines: list[bytes]
    """Rows, one for each item; none if rows are not stored."""
    total: int


def split(data: bytes, rows: int, header_bytes: int | None) -> KeptRows | None:
    """Return the rows of a segment one by one; None if they can't be told apart.

    Args:
        rows: how many there are.
        header_bytes: see `RowRenderer.header_bytes`.
    """
    if header_bytes is None:
        return None
    lines = data[header_bytes:].split(b"\n")
    rest = lines.pop()
    if rest or len(lines) != rows:
        return None
    return KeptRows(data[:header_bytes], [line + b"\n" for line in lines], rows)


class Patch(NamedTuple):
    """A mini-batch after its failed items were run again.

    Args:
        retried: the parts that were run again.
        good: those of them, or within them, that went well, in order, with what run() has returned.
    """

    other_rows: KeptRows
    retried: list[ItemRange]
    good: list[tuple[ItemRange, Any]]

    def render(self, rows: RowRenderer) -> Rendered:
        """Return all rows, in the order of the items.

        Raises:
            BadReturn: the new rows have other columns than those before.
        """
        rendered = [(part, rows.render(returned)) for part, returned in self.good]
        pieces = [*self._in_order(rendered, rows)]
        heads = {head for head in (self.other_rows.head, *(head for head, _ in pieces)) if head}
        if len(heads) > 1:
            raise BadReturn("the rows of the items that were run again have other columns than those of the others")
        return Rendered(
            b"".join([*heads, *(data for _, data in pieces)]),
            self.other_rows.total + sum(each.rows for _, each in rendered),
            sum(each.line_breaks for _, each in rendered),
            sum(each.shortened for _, each in rendered),
        )

    def _in_order(
        self, rendered: Iterable[tuple[ItemRange, Rendered]], rows: RowRenderer
    ) -> Iterator[tuple[bytes, bytes]]:
        """Yield header and rows of each piece."""
        lines, end, new = iter(self.other_rows.lines), 0, [*rendered]
        for part in sorted(self.retried):
            yield b"", b"".join(islice(lines, part.first - end))
            end = part.first + part.items
            for within, each in new:
                if part.has(within):
                    header_bytes = rows.header_bytes(each.data)
                    yield each.data[:header_bytes], each.data[header_bytes:]
        yield b"", b"".join(lines)
