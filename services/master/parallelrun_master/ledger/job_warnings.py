"""Warnings about a job's data: those of decided mini-batches, and those that leaders find while they list and cut."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Final, Self

import msgspec

from parallelrun_core.durable_files import replace_file
from parallelrun_core.folder.decided import Decided
from parallelrun_core.layout import PRIVATE_FILE, Layout
from parallelrun_core.wire.data_warnings import DataWarning, WarningTotals
from parallelrun_core.wire.masking import Mask

_decode: Final = msgspec.json.Decoder(list[DataWarning]).decode


class JobWarnings:
    """All warnings about a job's data, each counted once.

    What leaders find is in a file of the job folder for each term, since a later leader lists nothing again that is
    listed already. What it does find again isn't counted again: the highest count stays.

    Args:
        decided: has those of the mini-batches.
        mask: hides secrets.
    """

    def __init__(self, layout: Layout, term: int, decided: Decided, mask: Mask, others: WarningTotals) -> None:
        self._layout = layout
        self._term = term
        self._decided = decided
        self._mask = mask
        self._own = WarningTotals()
        self._others = others

    @classmethod
    def open(cls, folder: Path, term: int, decided: Decided, mask: Mask) -> Self:
        """Read the warnings that leaders of earlier terms have found."""
        layout, others = Layout(folder), WarningTotals()
        for path in layout.all_warnings:
            with suppress(OSError, msgspec.MsgspecError):  # a disk that lost them has lost no row
                others.raise_to(_decode(path.read_bytes()))
        return cls(layout, term, decided, mask, others)

    def add(self, warning: DataWarning) -> None:
        """Add what this leader has found; of the same kind, file and column, the counts are added. Kept on return."""
        self._own.add([self._mask.warning(warning)])
        with suppress(OSError):  # a full disk fails no job for a warning
            path = self._layout.warnings(self._term)
            replace_file(path, msgspec.json.encode(list(self._own)), mode=PRIVATE_FILE)

    def totals(self) -> WarningTotals:
        """All of them, as they are now."""
        totals = WarningTotals()
        totals.add(self._decided.warnings)
        leaders = WarningTotals()
        leaders.raise_to(self._others)
        leaders.raise_to(self._own)
        totals.add(leaders)
        return totals
