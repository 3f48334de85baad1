"""The entry script: how many words each file has."""

from pathlib import Path


def run(mini_batch):
    return [f"{Path(path).name}: {len(Path(path).read_text().split())} words" for path in mini_batch]
