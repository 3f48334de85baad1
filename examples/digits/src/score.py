"""The entry script: recognizes the digit on each image."""

import argparse
from pathlib import Path

import joblib
import numpy as np
from PIL import Image

model = None


def init():
    """Called once in each worker: loads the classifier."""
    global model
    parser = argparse.ArgumentParser()
    parser.add_argument("--model")
    args, _ = parser.parse_known_args()
    model = joblib.load(args.model)


def run(mini_batch):
    """Gets some images at a time, and returns one line for each."""
    images = np.stack([np.asarray(Image.open(path)).reshape(-1) for path in mini_batch]) / 15
    return [f"{Path(path).name} {digit}" for path, digit in zip(mini_batch, model.predict(images), strict=True)]
