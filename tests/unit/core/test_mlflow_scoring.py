"""What scores files with an MLflow model; the model here is a stand-in, which adds two columns."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pandas as pd
import pytest

from parallelrun_core.azure import batch_deployment


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    (tmp_path / "models" / "adder").mkdir(parents=True)
    (tmp_path / "models" / "adder" / "MLmodel").touch()
    loaded = SimpleNamespace(predict=lambda rows: rows["a"] + rows["b"])
    mlflow: Any = ModuleType("mlflow")
    mlflow.pyfunc = SimpleNamespace(load_model=lambda path: loaded if path.endswith("adder") else None)
    monkeypatch.setitem(sys.modules, "mlflow", mlflow)
    monkeypatch.setenv("AZUREML_MODEL_DIR", str(tmp_path / "models"))
    path = Path(batch_deployment.__file__).parent / "mlflow_scoring" / "score_mlflow_model.py"
    spec = importlib.util.spec_from_file_location("score_mlflow_model", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_each_row_of_each_file_has_its_prediction(script: ModuleType, tmp_path: Path) -> None:
    rows = pd.DataFrame({"a": [1, 2], "b": [10, 20]})
    rows.to_csv(tmp_path / "x.csv", index=False)
    rows.to_json(tmp_path / "y.jsonl", orient="records", lines=True)
    script.init()
    scored = script.run([str(tmp_path / "x.csv"), str(tmp_path / "y.jsonl")])
    assert scored.to_dict("list") == {
        "row": [0, 1, 0, 1], "prediction": [11, 22, 11, 22], "file": ["x.csv", "x.csv", "y.jsonl", "y.jsonl"],
    }  # fmt: skip


def test_what_it_cannot_read_and_what_it_does_not_find_is_said(script: ModuleType, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"others need a scoring script"):
        script.read(tmp_path / "x.png")
    (tmp_path / "models" / "other").mkdir()
    (tmp_path / "models" / "other" / "MLmodel").touch()
    with pytest.raises(FileNotFoundError, match="are 2 files MLmodel, not one"):
        script.init()
