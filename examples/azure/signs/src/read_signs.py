"""Reads arrows on signs: a list of files in, a line for each out."""

import argparse
import logging
from pathlib import Path

from shapes import SHAPES


def init():
    """Called once in each worker."""
    global args
    parser = argparse.ArgumentParser()
    parser.add_argument("--max_wrong", type=int, default=0)
    args, _ = parser.parse_known_args()
    logging.info("up to %s wrong dots", args.max_wrong)


def run(mini_batch):
    """Gets some pictures at a time."""
    results = []
    for path in mini_batch:
        picture = Path(path).read_text().split()
        wrong = {name: differences(picture, shape) for name, shape in SHAPES.items()}
        best = min(wrong, key=wrong.get)
        if wrong[best] <= args.max_wrong:
            results.append(f"{Path(path).name}: {best}")
    return results


def differences(picture, shape):
    """The number of dots that differ."""
    return sum(a != b for ours, theirs in zip(picture, shape, strict=True) for a, b in zip(ours, theirs, strict=True))
