"""Fits how demand falls with the price, for each store and brand: one mini-batch has all of their rows."""

import argparse
import json
from pathlib import Path

import numpy as np


def init():
    """Called once in each worker."""
    global models
    parser = argparse.ArgumentParser()
    parser.add_argument("--models", type=Path, required=True)
    models = parser.parse_known_args()[0].models
    models.mkdir(parents=True, exist_ok=True)


def run(mini_batch, mini_batch_context):
    """Gets all weeks of one store and brand. The model goes to the folder; what is returned is only counted."""
    keys = mini_batch_context.partition_key_value
    slope, start = np.polyfit(mini_batch["price"], mini_batch["sold"], 1)
    model = {**keys, "weeks": len(mini_batch), "start": round(start, 3), "slope": round(slope, 3)}
    (models / f"{keys['store']}_{keys['brand']}.json").write_text(json.dumps(model))
    return list(mini_batch["week"])
