"""Objects on lines, as they write them on the Moon."""

from parallelrun_master.planning.formats.json_lines import JsonLinesCutting as MoonCutting

__all__ = ["MoonCutting"]
