"""Candidates in agents' journals: work that was finished when Redis forgot it, or the disk the decision.

Such a candidate was durable before its agent offered it to Redis, so it need not be run again. Which delivery it came
from no longer matters: nobody else has decided the mini-batch, and whoever still works on it is too late.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from parallelrun_core.folder.damage import has_rows
from parallelrun_core.folder.decided import Decided
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.folder.record_log import read_records
from parallelrun_core.wire.outcome import Outcome, decode_list

if TYPE_CHECKING:
    from parallelrun_master.leader.job_context import JobContext


def recover_journals(job: JobContext) -> int:
    """Take what agents have finished of what has no decision; returns how many mini-batches that is."""
    recovered = job.ledger.recover(finished(job.folder, job.ledger.decided, job.queue.generation))
    if recovered:
        job.log.warning("journals_adopted", mini_batches=recovered)
        job.reports.say(f"Recovered {recovered:,} finished mini-batches from the journals of the nodes.")
    return recovered


def finished(folder: JobFolder, decided: Decided, generation: int) -> Iterator[Outcome]:
    """The candidates with status `done` of this generation that have no decision and whose rows are intact.

    What can't be read of a journal is passed over: those mini-batches are run again.
    """
    return (each for each in _candidates(folder, decided, generation) if _is_finished(folder, each))


def _candidates(folder: JobFolder, decided: Decided, generation: int) -> Iterator[Outcome]:
    for journal in sorted(folder.journals.glob("*")):
        for _, raw in read_records(journal, on_damage=lambda _: None):
            for outcome in decode_list(raw):
                if outcome.generation == generation and outcome.mini_batch not in decided:
                    yield outcome


def _is_finished(folder: JobFolder, outcome: Outcome) -> bool:
    try:
        return outcome.status == "done" and has_rows(folder.parts, outcome)
    except OSError:
        return False
