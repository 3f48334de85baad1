"""Returns a row for each file: its name, what is in it, and the limit."""

from __future__ import annotations

import argparse
from pathlib import Path

parser = argparse.ArgumentParser(allow_abbrev=False)
parser.add_argument("--limit", default="none")
limit = parser.parse_known_args()[0].limit


def run(mini_batch: list[str]) -> list[str]:
    return [f"{Path(file).name} {Path(file).read_text().strip()} {limit}" for file in mini_batch]
