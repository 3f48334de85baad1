"""A table on disk, cut by the master and read by a worker, without any process between them."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pandas as pd

from parallelrun_core.mltable.plan import plan_input
from parallelrun_core.spec.fields import Input, MiniBatchSize
from parallelrun_core.wire.data_warnings import DataWarning
from parallelrun_master.planning.formats import format_of
from parallelrun_master.planning.sources import Sources, paths_in
from parallelrun_master.planning.table_cutting import TableCutter
from parallelrun_worker.tables.table import Table

WHOLE = 1 << 20


class Cut:
    """An input of a job, cut and read.

    Args:
        folder: the input: one with an MLTable file, or one for these steps.
        keep_errors: a piece that can't be read is an entry of `errors`, and its frame is missing.
    """

    def __init__(
        self,
        folder: Path,
        steps: Sequence[Any] = (),
        size: int | str = WHOLE,
        keys: Sequence[str] = (),
        *,
        keep_errors: bool = False,
    ) -> None:
        is_table = (folder / "MLTable").exists()
        given = Input(path=str(folder), type="mltable" if is_table else "uri_folder", transformations=tuple(steps))
        self.plan = plan_input("data", given, list(keys), unit=MiniBatchSize.parse(size).unit)
        self.files = list(paths_in(Sources(self.plan)))
        self.plan.sample = [os.fsdecode(file) for file in self.files]
        if self.files:
            format_of(self.plan.kind).prepare(self.plan)
        self.table = Table(json.loads(msgspec.json.encode(self.plan)), str(new_folder() / "schema"))
        self.warnings: list[DataWarning] = []
        found = TableCutter(self.plan, MiniBatchSize.parse(size), warn=self.warnings.append).pieces(self.files)
        self.pieces = [piece for piece in found if piece is not None]
        self.frames: list[pd.DataFrame] = []
        self.errors: list[str] = []
        for piece in self.pieces:
            try:
                self.frames.append(self.table.read([(os.fsdecode(piece.path), *piece.rest)]))
            except (OSError, ValueError) as error:
                if not keep_errors:
                    raise
                self.errors.append(str(error))

    @property
    def frame(self) -> pd.DataFrame:
        """The rows of a table that is one mini-batch."""
        (frame,) = self.frames
        return frame

    def rows(self) -> list[tuple[Any, ...]]:
        return [row for frame in self.frames for row in values(frame)]


def values(frame: pd.DataFrame) -> list[tuple[Any, ...]]:
    """The rows, with None for every null."""
    return [tuple(None if pd.isna(value) is True else value for value in row) for row in frame.itertuples(index=False)]


def new_folder() -> Path:
    """One that goes when all tests are through: examples can't ask for a folder of their test, which is one for all."""
    return Path(tempfile.mkdtemp(prefix="table-"))


def folder_with(files: Mapping[str, bytes | str], mltable: str = "") -> Path:
    folder = new_folder()
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    if mltable:
        (folder / "MLTable").write_text(mltable)
    return folder
