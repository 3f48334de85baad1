"""Objects on lines, as they write them on the Moon."""

from parallelrun_worker.tables.formats.json_lines import JsonLinesFormat as MoonFormat

__all__ = ["MoonFormat"]
