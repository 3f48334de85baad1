"""What all systems run, and on what: a mini-batch is a list of paths, its rows are a list of strings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Final

from benchmarks.image_model import classify

WORKERS: Final = 2
EACH: Final = 10
"""Paths in a mini-batch."""
EACH_OF: Final = {"images": 32}
"""The same for work that has another number."""

Work = Callable[[list[str]], list[str]]
Run = Callable[[list[list[str]]], Iterable[list[str]]]
"""Takes all mini-batches, gives back the rows of each, in whatever order."""


def echo(paths: list[str]) -> list[str]:
    """Do nothing."""
    return paths


def hash_files(paths: list[str]) -> list[str]:
    """Twenty times the sha256 of each file."""
    rows = []
    for path in paths:
        content = Path(path).read_bytes()
        digest = ""
        for _ in range(20):
            digest = sha256(content).hexdigest()
        rows.append(f"{path} {digest}")
    return rows


WORKS: Final[dict[str, Work]] = {"noop": echo, "hashing": hash_files, "images": classify}


def mini_batches_of(folder: Path, files: int, each: int = EACH) -> list[list[str]]:
    """The files of a folder that `data.files` created, so many in each mini-batch, without listing it."""
    paths = [f"{folder}/img_{number:07d}.jpg" for number in range(files)]
    return [paths[first : first + each] for first in range(0, files, each)]


def lines(results: Iterable[list[str]]) -> Iterator[str]:
    """The rows as they stand in an output file."""
    for rows in results:
        yield "\n".join(rows) + "\n"
