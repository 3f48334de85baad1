"""What a described delivery becomes, and what is said when it can't be read here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from parallelrun_core.intake.reading import read_job
from parallelrun_core.mltable.input_plan import as_json
from parallelrun_core.mltable.plan import plan_inputs
from parallelrun_worker.mini_batches.mini_batch import Loader


def loader(folder: Path, **plan: Any) -> Loader:
    (folder / "inputs.json").write_text(json.dumps([{"name": "data", "kind": "files", "keys": [], **plan}]))
    return Loader(str(folder / "inputs.json"))


@pytest.mark.parametrize("kind, library", [("delimited", "pandas"), ("parquet", "pyarrow"), ("delta_lake", "pyarrow")])
def test_a_library_that_is_missing_is_named_before_init(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, library: str
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ModuleNotFoundError, match=rf"read with {library}.* Add {library} to the job's environment"):
        loader(tmp_path, kind=kind, steps=[]).prepare()


def test_lists_of_files_need_no_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    loader(tmp_path).prepare()
    Loader(str(tmp_path / "nowhere.json")).prepare()


READ = """
import sys
from parallelrun_worker.tables.plan_records import read
from parallelrun_worker.mini_batches.mini_batch import Loader
Loader(sys.argv[1]).prepare()
before = set(sys.modules)
from parallelrun_worker.tables.table import Table
(plan,) = read(sys.argv[1])
Table(plan, sys.argv[2]).read([(plan["sample"][0], 0, -1, False, -1)])
added = set(sys.modules) - before
print(*sorted(name for name in added if name.startswith(("parallelrun_worker.tables.formats", "pyarrow._"))))
"""


def test_what_reads_a_table_is_there_before_its_first_mini_batch(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a,b\n1,x\n")
    inputs = {"data": {"path": str(tmp_path / "a.csv"), "transformations": ["read_delimited"]}}
    (plan,) = plan_inputs(read_job({"entry_script": "e.py", "inputs": inputs}).job)
    plan.sample = [str(tmp_path / "a.csv")]
    (tmp_path / "inputs.json").write_bytes(as_json([plan]))
    command = [sys.executable, "-c", READ, str(tmp_path / "inputs.json"), str(tmp_path / "schema.json")]
    read = subprocess.run(command, capture_output=True, text=True, check=True)
    assert read.stdout == "\n"


def test_a_kind_of_tables_that_is_not_known_is_left_to_its_mini_batches(tmp_path: Path) -> None:
    loader(tmp_path, kind="of_next_year", steps=[]).prepare()


def test_files_with_their_keys(tmp_path: Path) -> None:
    paths = ["/data/\udcff.txt", "/data/b.txt"]
    described = {"input": 0, "keys": ["1006", None], "pieces": [], "paths": paths}
    found = loader(tmp_path, keys=["store", "brand"], is_copied=False).load(json.dumps(described).encode())
    assert found.value == paths
    assert found.items == 2
    assert found.partition_key_value == {"store": "1006", "brand": None}
    assert found.dataset is not None
    assert (found.dataset.name, found.dataset.paths) == ("data", paths)
    assert os.fsencode(paths[0]) == b"/data/\xff.txt"


def test_a_rank_is_one_item_without_data(tmp_path: Path) -> None:
    described = {"input": -1, "keys": [], "pieces": [], "paths": []}
    found = loader(tmp_path).load(json.dumps(described).encode())
    assert (found.value, found.items, found.partition_key_value, found.dataset) == ([], 1, {}, None)
