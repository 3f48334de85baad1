"""What a described delivery becomes, and what is said when it can't be read here."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from parallelrun_worker.mini_batches.mini_batch import Loader


def loader(folder: Path, **plan: Any) -> Loader:
    (folder / "inputs.json").write_text(json.dumps([{"name": "data", "kind": "files", "keys": [], **plan}]))
    return Loader(str(folder / "inputs.json"))


@pytest.mark.parametrize("kind, library", [("delimited", "pandas"), ("parquet", "pyarrow"), ("delta_lake", "pyarrow")])
def test_a_library_that_is_missing_is_named_before_init(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, library: str
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ImportError, match=rf"read with {library}.* Add {library} to the job's environment"):
        loader(tmp_path, kind=kind, steps=[]).prepare()


def test_lists_of_files_need_no_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    loader(tmp_path).prepare()
    Loader(str(tmp_path / "nowhere.json")).prepare()


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
