"""Warnings about files that others have left beside a job's data: which were skipped, and which it takes for data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from parallelrun_core.mltable.input_plan import InputPlan
from parallelrun_core.storage.leftovers import LeftoverNames, Leftovers
from parallelrun_core.wire.data_warnings import DataWarning

SKIPPED: Final = "skipped"
_MARKER: Final = "folder_marker"
_LITTER: Final = "litter"
_DELTA: Final = "delta_table"
_DELTA_LOG: Final = "/_delta_log/"
_NOT_WHOLE: Final = "half_written"


def leftover_warnings(plan: InputPlan, leftovers: Iterable[Leftovers]) -> Iterator[DataWarning]:
    """Yield a warning for each sort of files of each listing of an input, if there are any."""
    option = f"inputs.{plan.name}.{'hidden_files' if plan.is_table else 'litter_files'}"
    for each in leftovers:
        if each.skipped.count:
            rule = "names that begin with _ or . are skipped" if plan.is_table else "known not to be data and skipped"
            remedy = f"to read them, write {option}: read, or name them by a path or a pattern"
            yield _warning(SKIPPED, each, each.skipped, rule, remedy)
            if plan.kind == "parquet" and any(_DELTA_LOG in f"/{name}" for name in each.skipped.first):
                event = "it is a Delta table, whose files may hold rows that were deleted or replaced since"
                remedy = "read_delta_lake reads the rows that it has"
                yield DataWarning(_DELTA, each.folder, "", event, remedy, 1, "file")
        if each.kept_litter.count:
            remedy = f"to leave them out, write inputs.{plan.name}.litter_files: skip"
            yield _warning(_LITTER, each, each.kept_litter, "known not to be data, and read as data", remedy)
        if each.markers.count:
            remedy = "an empty object whose name is also that of a folder marks it; give one that is data another name"
            yield _warning(_MARKER, each, each.markers, "empty objects that mark folders were skipped", remedy)
        if each.not_whole.count:
            remedy = "wait for the program that writes them; else remove them, or name what is data by a pattern"
            yield _warning(
                _NOT_WHOLE, each, each.not_whole, "read although the name is that of a part or an old copy", remedy
            )


def _warning(kind: str, leftovers: Leftovers, names: LeftoverNames, event: str, remedy: str) -> DataWarning:
    return DataWarning(kind, leftovers.folder, "", f"{event}: {names}", remedy, names.count, "file")
