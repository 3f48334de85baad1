"""Scores files with an MLflow model: what a batch deployment runs whose document names no scoring script.

It is copied as the code of such a job, and imports nothing of ours. One row for each row of the files: its number in
the file, the prediction, the name of the file (reference §3.9).
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import mlflow  # type: ignore[import-not-found]  # of the environment of the job
import pandas as pd

MODELS: list[Any] = []


def init() -> None:
    """Load the model: the folder below AZUREML_MODEL_DIR that has a file MLmodel."""
    model_files = sorted(Path(os.environ["AZUREML_MODEL_DIR"]).glob("*/MLmodel"))
    model_files = model_files or sorted(Path(os.environ["AZUREML_MODEL_DIR"]).glob("*/*/MLmodel"))
    if len(model_files) != 1:
        raise FileNotFoundError(f"below AZUREML_MODEL_DIR are {len(model_files)} files MLmodel, not one")
    MODELS[:] = [mlflow.pyfunc.load_model(str(model_files[0].parent))]


def run(mini_batch: list[str]) -> pd.DataFrame:
    """Predict for each row of the files."""
    tables = []
    for path in map(Path, mini_batch):
        rows = read(path)
        predictions = MODELS[0].predict(rows)
        if isinstance(predictions, pd.DataFrame) and len(predictions.columns) == 1:
            predictions = predictions.iloc[:, 0]
        elif isinstance(predictions, pd.DataFrame):
            predictions = predictions.to_dict("records")
        table = pd.DataFrame({"row": range(len(rows)), "prediction": list(predictions)})
        tables.append(table.assign(file=path.name))
    return pd.concat(tables, ignore_index=True)


def read(path: Path) -> pd.DataFrame:
    """The rows of a file, by its extension."""
    if path.suffix == ".csv":
        return pd.read_csv(path)
    if path.suffix in (".parquet", ".pq"):
        return pd.read_parquet(path)
    if path.suffix in (".jsonl", ".ndjson"):
        return pd.read_json(path, lines=True)
    if path.suffix == ".txt":
        return pd.DataFrame({os.environ.get("AZUREML_BI_TEXT_COLUMN", "text"): path.read_text().splitlines()})
    raise ValueError(f"{path.name}: only .csv, .parquet, .jsonl and .txt can be read; others need a scoring script")
