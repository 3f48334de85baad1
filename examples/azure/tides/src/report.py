"""Writes a report on the tides of all harbors."""

import sys
from pathlib import Path

tides, report = map(Path, sys.argv[1:])
with (report / "tides.md").open("w") as file:
    file.write("| harbor | high | low |\n|---|---|---|\n")
    for line in sorted(tides.read_text().splitlines()):
        harbor, high, when_high, low, when_low = line.split()
        file.write(f"| {harbor} | {high} m at {when_high} | {low} m at {when_low} |\n")
