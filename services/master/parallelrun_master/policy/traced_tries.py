"""Traced tries: those of a job that are in its trace, if there are more than it may have. Pure."""

from __future__ import annotations

from typing import Final

import numpy as np

from parallelrun_core.adviser.evidence import DONE, Ints, Tries

_SHARES: Final = 4


def chosen(tries: Tries, most: int) -> Ints:
    """Return the places of the tries that are shown, in their order: all of them, unless there are more than `most`.

    Then they are the first failures and the slowest tries, of each at most a quarter of `most`. What is left of `most`
    is filled up with other tries, at even distances.
    """
    count = len(tries)
    if count <= most:
        return np.arange(count)
    if not most:
        return np.zeros(0, np.int64)
    few = most // _SHARES
    failed = np.flatnonzero(tries.status != DONE)[:few]
    slowest = np.argsort(-tries.elapsed_s, kind="stable")[:few]
    special = np.union1d(failed, slowest)
    others = np.setdiff1d(np.arange(count), special, assume_unique=True)
    spread = np.linspace(0, len(others) - 1, most - len(special)).round().astype(np.int64)
    return np.union1d(special, others[spread])
