"""Delimited text: with `support_multi_line`, it is searched for the beginnings of records."""

from __future__ import annotations

from typing import BinaryIO, Final

from parallelrun_core.mltable.formats.delimited import ReadDelimited
from parallelrun_core.mltable.input_plan import InputPlan
from parallelrun_core.spec.fields import MiniBatchSize
from parallelrun_core.storage.interface import size_of
from parallelrun_core.storage.path_rule import PathRule
from parallelrun_core.storage.stores import storage_of
from parallelrun_master.planning.table_format import RowWindow
from parallelrun_master.planning.text_cutting import TextCutting
from parallelrun_master.planning.text_form import TextForm, form_of
from parallelrun_worker.tables.heads import HeadRules

_EMPTY_UP_TO: Final = 3
"""A file of up to so many bytes holds at most a byte order mark."""


class DelimitedCutting(TextCutting):
    """Its files may begin with a header."""

    def __init__(self, plan: InputPlan, size: MiniBatchSize, window: RowWindow, rule: PathRule | None = None) -> None:
        super().__init__(plan, size, window, rule)
        assert isinstance(plan.read, ReadDelimited)  # noqa: S101 - for the type checker
        self._read = plan.read
        self.searches = self.searches or self._read.support_multi_line
        self._is_first_file = True

    @staticmethod
    def prepare(plan: InputPlan, rule: PathRule | None = None) -> None:
        """Put into the plan which file has the header, where workers can't see it."""
        assert isinstance(plan.read, ReadDelimited)  # noqa: S101 - for the type checker
        if plan.is_staged and plan.read.header == "from_first_file":
            sizes = ((path, storage_of(path).version(path).size_bytes) for path in plan.sample)
            plan.first_with_text = next((path for path, size in sizes if size > _EMPTY_UP_TO), "")

    def form(self, file: BinaryIO) -> TextForm:
        read = self._read
        has_header = self._has_header(size_of(file))
        rules = HeadRules(read.delimiter, read.support_multi_line, has_header, read.skip_lines, read.comment)
        return form_of(file, read.encoding, rules)

    def _has_header(self, size: int) -> bool:
        """Return whether the next file, of so many bytes, has a header."""
        mode = self._read.header
        is_first, self._is_first_file = self._is_first_file, self._is_first_file and size <= _EMPTY_UP_TO
        return mode.startswith("all_files") or (mode == "from_first_file" and is_first)
