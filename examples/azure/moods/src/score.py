"""Scores letters by the words in them, with a model that weighs words."""

import json
import os
from pathlib import Path

from azureml.core import Run

WEIGHTS: dict[str, int] = {}


def init() -> None:
    folder = Path(os.environ["AZUREML_MODEL_DIR"]) / "model"
    WEIGHTS.update(json.loads((folder / "weights.json").read_text()))


def run(mini_batch: list[str]) -> list[str]:
    rows = []
    for path in map(Path, mini_batch):
        score = sum(WEIGHTS.get(word.strip(".,!").lower(), 0) for word in path.read_text().split())
        rows.append(f"{path.name},{'glad' if score > 0 else 'sad'}")
    Run.get_context().log("letters", len(rows))
    return rows
