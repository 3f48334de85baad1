"""Writes the input of the example: 3,000 short texts, of which three are empty."""

from __future__ import annotations

import json
import random
from pathlib import Path

DATA = Path(__file__).parent / "data"
TEXTS = 3000
EMPTY = (7, 1234, 2999)
_WHO = ("A heron", "The night train", "My neighbor", "A swarm of bees", "The old lighthouse", "Nobody")
_DOES = ("waits for", "forgets", "has found", "is afraid of", "sings to", "looks like")
_WHAT = ("the first snow", "a paper boat", "its own shadow", "the tide", "an empty station", "the moon")


def prepare() -> None:
    """Write `data/texts.jsonl`, the same each time."""
    draw = random.Random(1)
    DATA.mkdir(exist_ok=True)
    with (DATA / "texts.jsonl").open("w") as file:
        for number in range(TEXTS):
            text = f"{draw.choice(_WHO)} {draw.choice(_DOES)} {draw.choice(_WHAT)}, {number} times."
            file.write(json.dumps({"id": number, "text": "" if number in EMPTY else text}) + "\n")


if __name__ == "__main__":
    prepare()
