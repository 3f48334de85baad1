"""Objects on lines, as they write them on the Moon."""

from __future__ import annotations

from parallelrun_core.mltable.formats import json_lines


class ReadMoon(json_lines.ReadJsonLines, tag="read_moon"):
    """Nothing is different there but the name."""

    suffixes = (".moon", ".crater")
