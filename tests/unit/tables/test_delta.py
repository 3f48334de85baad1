"""Delta tables: the files of one version, with the partition columns that stand in their paths."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import deltalake
import pandas as pd
import pytest

from parallelrun_core.errors import InvalidInput
from parallelrun_core.mltable.plan import plan_input
from parallelrun_core.spec.fields import Input
from parallelrun_master.planning import delta
from parallelrun_master.planning.sources import Sources, paths_in
from parallelrun_worker.tables.table import Table


def rows(folder: Path, **options: Any) -> list[tuple[Any, ...]]:
    given = Input(path=str(folder), transformations=({"read_delta_lake": options},))
    plan = plan_input("data", given, [])
    delta.settle(plan)
    fields: dict[str, Any] = {
        "kind": plan.kind, "read": plan.read, "steps": [], "root": plan.root, "extracts_first": False, "sample": [],
    }  # fmt: skip
    pieces = [(path.decode(), 0, -1, True, -1) for path in paths_in(Sources(plan))]
    return sorted(Table(fields, "").read(pieces).itertuples(index=False, name=None))


def test_a_version_is_read_with_its_partition_columns(tmp_path: Path) -> None:
    frame = pd.DataFrame({"n": [1, 2, 3], "year": [2020, 2021, 2021], "k": ["a b", "a b", "c/d"]})
    deltalake.write_deltalake(str(tmp_path), frame, partition_by=["year", "k"])
    deltalake.write_deltalake(str(tmp_path), frame.assign(n=9), mode="append")
    first = [(1, 2020, "a b"), (2, 2021, "a b"), (3, 2021, "c/d")]
    assert rows(tmp_path, version_as_of=0) == first
    assert rows(tmp_path, version_as_of=1) == sorted(first + [(9, year, k) for _, year, k in first])
    assert len(rows(tmp_path, timestamp_as_of="2100-01-01T00:00:00+00:00")) == 6
    with pytest.raises(InvalidInput, match="not one of its versions"):
        rows(tmp_path, version_as_of=7)


def test_without_the_library_or_the_table_it_is_told(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"deltalake, which is not installed|not a Delta table"):
        rows(tmp_path, version_as_of=0)
