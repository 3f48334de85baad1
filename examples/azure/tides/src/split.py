"""Makes a file for each harbor of one table."""

import argparse
import csv
from pathlib import Path

parser = argparse.ArgumentParser()
parser.add_argument("--levels", type=Path)
parser.add_argument("--to", type=Path)
given = parser.parse_args()

with given.levels.open(newline="") as file:
    for row in csv.DictReader(file):
        with (given.to / f"{row['harbor']}.txt").open("a") as harbor:
            harbor.write(f"{row['hour']} {row['meters']}\n")
