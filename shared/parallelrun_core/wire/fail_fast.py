"""`fail_fast`: what nodes and leaders both know of jobs that are given up because all their mini-batches fail alike."""

from __future__ import annotations

from typing import Final

_FEWEST: Final = 20
_FOR_EACH_WORKER: Final = 3


def fewest_failures(workers: int) -> int:
    """Return how many mini-batches have to fail alike, with so many workers, before a job is given up."""
    return max(_FEWEST, _FOR_EACH_WORKER * workers)
