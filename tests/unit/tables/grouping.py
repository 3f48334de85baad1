"""A table on disk, grouped by keys as a leader has it done, and read by a worker group by group."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pandas as pd

from parallelrun_core.mltable.plan import plan_input
from parallelrun_core.spec.fields import Input, MiniBatchSize
from parallelrun_master.planning.formats import format_of
from parallelrun_master.planning.shuffling import read_groups, rows_of, warnings_of
from parallelrun_master.planning.sources import Sources, paths_in
from parallelrun_master.planning.table_cutting import TableCutter
from parallelrun_worker.shuffle.__main__ import group
from parallelrun_worker.tables.table import Table
from tests.unit.tables.cutting import new_folder


class Grouped:
    """An input of a job, grouped and read.

    Args:
        size: of the pieces in which it is read to be grouped.
        keep_errors: groups that can't be read are `errors`; otherwise the first one raises.
    """

    def __init__(
        self, folder: Path, steps: Sequence[Any], keys: Sequence[str], size: int = 1 << 20, *, keep_errors: bool = False
    ) -> None:
        plan = plan_input("data", Input(path=str(folder), transformations=tuple(steps)), list(keys))
        assert plan.is_shuffled
        files = list(paths_in(Sources(plan)))
        plan.sample = [os.fsdecode(file) for file in files]
        format_of(plan.kind).prepare(plan)
        pieces = TableCutter(plan, MiniBatchSize.parse(size)).pieces(files)
        job = new_folder()
        target = (job / rows_of(0)).parent
        (target / "spilled").mkdir(parents=True)
        fields = json.loads(msgspec.json.encode(plan))
        self.count = group(
            {
                "plan": fields,
                "schema": str(job / "schema.0.json"),
                "folder": str(target),
                "pieces": [(os.fsdecode(piece.path), *piece.rest) for piece in pieces if piece is not None],
            }
        )
        self.warnings = warnings_of(job, 0)
        """What the leader has been told."""
        self.table = Table(fields, str(job / "schema.0.json"))
        self.rows = (target / "rows").read_bytes()
        self.groups: list[tuple[tuple[str | None, ...], pd.DataFrame]] = []
        self.errors: list[str] = []
        for start, end, group_keys in read_groups(job, 0):
            try:
                rows = self.table.read([(str(target / "rows"), start, end, True, -1)])
            except ValueError as error:
                if not keep_errors:
                    raise
                self.errors.append(str(error))
            else:
                self.groups.append((tuple(group_keys), rows))

    @property
    def frames(self) -> dict[tuple[str | None, ...], pd.DataFrame]:
        """The groups by their keys."""
        assert len({keys for keys, _ in self.groups}) == len(self.groups)
        return dict(self.groups)
