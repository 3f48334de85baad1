"""What agents had finished when Redis forgot it: candidates in their journals for mini-batches without a decision.

Such a candidate was durable before its agent offered it to Redis, so it need not be run again. Which delivery it came
from no longer matters: nobody else has decided the mini-batch, and whoever still works on it is too late.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from itertools import islice

from parallelrun_core.folder.decisions import Decided
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.folder.record_log import read_records
from parallelrun_core.outcome import Outcome, decode_list

_BLOCK_BYTES = 1 << 20
_ASKED_AT_ONCE = 1000


def finished(folder: JobFolder, decided: Decided, generation: int) -> Iterator[Outcome]:
    """The candidates with status `done` of this generation that have no decision and whose rows are intact."""
    return (each for each in _candidates(folder, decided, generation) if _is_finished(folder, each))


def reported(
    folder: JobFolder, decided: Decided, generation: int, undecided: Callable[[Sequence[int]], set[int]]
) -> Iterator[Outcome]:
    """The same, and those that failed for good, if Redis took that as their decision.

    Args:
        undecided: those of some mini-batches that Redis still has.
    """
    candidates = _candidates(folder, decided, generation)
    while some := list(islice(candidates, _ASKED_AT_ONCE)):
        waiting = undecided([each.mini_batch for each in some])
        for each in some:
            if _is_finished(folder, each) or (each.status == "failed" and each.mini_batch not in waiting):
                yield each


def _candidates(folder: JobFolder, decided: Decided, generation: int) -> Iterator[Outcome]:
    for journal in sorted(folder.journals.glob("*")):
        for _, raw in read_records(journal):
            for outcome in decode_list(raw):
                if outcome.generation == generation and outcome.mini_batch not in decided:
                    yield outcome


def _is_finished(folder: JobFolder, outcome: Outcome) -> bool:
    return outcome.status == "done" and _has_rows(folder, outcome)


def _has_rows(folder: JobFolder, outcome: Outcome) -> bool:
    """Whether the rows are what was written: an agent that doesn't sync may have lost them in a power cut."""
    if not outcome.length:
        return True
    crc, left = 0, outcome.length
    try:
        with (folder.parts / outcome.part).open("rb") as part:
            part.seek(outcome.offset)
            while left and (block := part.read(min(left, _BLOCK_BYTES))):
                crc = zlib.crc32(block, crc)
                left -= len(block)
    except OSError:
        return False
    return not left and crc == outcome.crc
