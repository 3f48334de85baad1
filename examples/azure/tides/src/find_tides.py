"""The entry script: finds the highest and the lowest water of each harbor."""

from pathlib import Path


def run(mini_batch):
    rows = []
    for path in map(Path, mini_batch):
        levels = [(float(meters), hour) for hour, meters in map(str.split, path.read_text().splitlines())]
        (high, when_high), (low, when_low) = max(levels), min(levels)
        rows.append(f"{path.stem} {high} {when_high} {low} {when_low}")
    return rows
