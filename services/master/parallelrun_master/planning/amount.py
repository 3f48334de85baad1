"""The amount that was found in tables while they were cut: of some kinds the rows are known by then, of others the
bytes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from parallelrun_core.figures import counted
from parallelrun_core.wire.message import Piece

_LATER = "whose rows are counted as they are read"


@dataclass(slots=True)
class TableAmount:
    """The amount of a job's tables that one leader has cut."""

    rows: int = 0
    bytes: int = 0
    has_more: bool = False
    """True if neither rows nor bytes of some pieces are known here: an earlier leader has cut them, or they are whole
    files."""

    def add(self, pieces: Iterable[Piece], *, counts_rows: bool) -> None:
        """Count these pieces.

        Args:
            counts_rows: their ranges are of rows, not of bytes.
        """
        for piece in pieces:
            length = piece.end - piece.start
            if piece.rows >= 0:
                self.rows += piece.rows
            elif piece.end < 0:
                self.has_more = True
            elif counts_rows:
                self.rows += length
            else:
                self.bytes += length

    def words(self, items: int) -> str:
        """All that was scheduled, for people.

        Args:
            items: the files that were scheduled beside the tables.
        """
        parts = [counted(items, "item")] if items or not (self.rows or self.bytes or self.has_more) else []
        parts += [counted(self.rows, "row")] if self.rows else []
        if self.bytes:
            parts.append(f"{self.bytes:,} bytes of tables {_LATER}")
        if self.has_more:
            parts.append(f"{'more ' if parts else ''}tables {_LATER}")
        return " and ".join(parts)

    def total(self, items: int) -> str:
        """The number of items as a checkpoint has it: `unknown` while rows are not counted."""
        if self.bytes or self.has_more:
            return f"unknown, total_bytes {self.bytes}"
        return str(items + self.rows)
