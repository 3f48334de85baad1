"""JSON lines: a JSON value on each line."""

from parallelrun_core.wire.row_formats import RowFormat

FORMAT = RowFormat((".jsonl", ".ndjson"))
