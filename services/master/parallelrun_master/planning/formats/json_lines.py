"""JSON lines: each line is a record, so they are cut anywhere, unless rows are counted."""

from __future__ import annotations

from typing import BinaryIO

from parallelrun_core.mltable.formats.json_lines import ReadJsonLines
from parallelrun_master.planning.text_cutting import TextCutting
from parallelrun_master.planning.text_form import TextForm, form_of


class JsonLinesCutting(TextCutting):
    """Text without headers."""

    def form(self, file: BinaryIO) -> TextForm:
        assert isinstance(self.plan.read, ReadJsonLines)  # noqa: S101 - for the type checker
        return form_of(file, self.plan.read.encoding)
