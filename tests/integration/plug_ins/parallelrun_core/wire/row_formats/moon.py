"""Rows between craters."""

from parallelrun_core.wire.row_formats import RowFormat

FORMAT = RowFormat((".moon",))
