"""The decision log: the one authority on what became of each mini-batch.

A term log (see `termlog`); each record is a JSON array of outcomes with status `done` or `failed`, as the
leader accepted them. The first decision of a (mini-batch, generation) counts, and a later generation (a retry
by the user) replaces a failure, never a success.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from parallelrun_core import failpoints
from parallelrun_core.outcome import Outcome, decode_list, encode, encode_list
from parallelrun_core.recordlog import RecordWriter
from parallelrun_core.termlog import open_term, read_term_log

NAME = "decisions"


class Decided:
    """Which mini-batches have a decision, at a byte each."""

    _OPEN, _FAILED, _DONE = 0, 1, 2

    def __init__(self) -> None:
        self._states = bytearray()
        self._generations: dict[int, int] = {}  # only of those that failed: successes are never reopened
        self.count = 0

    def accept(self, outcome: Outcome) -> bool:
        """Whether this outcome is the decision of its mini-batch; remembers it if so."""
        mini_batch = outcome.mini_batch
        if mini_batch >= len(self._states):
            self._states.extend(bytes(max(mini_batch + 1 - len(self._states), 4096)))
        before = self._states[mini_batch]
        if not failpoints.enabled("commit.fence"):
            self.count += before == self._OPEN
        elif before == self._DONE or (
            before == self._FAILED and outcome.generation <= self._generations.get(mini_batch, 0)
        ):
            return False
        else:
            self.count += before == self._OPEN
        if outcome.status == "done":
            self._states[mini_batch] = self._DONE
        else:
            self._states[mini_batch] = self._FAILED
            self._generations[mini_batch] = outcome.generation
        return True

    def __contains__(self, mini_batch: int) -> bool:
        return mini_batch < len(self._states) and self._states[mini_batch] != self._OPEN


class DecisionWriter:
    """The leader's own file of the decision log; `decided` starts with what earlier terms decided.

    Raises:
        FileExistsError: this term has a decision log already.
    """

    def __init__(self, folder: Path, term: int) -> None:
        self.decided = Decided()
        self._log: RecordWriter = open_term(folder, NAME, term)
        for outcome in read_outcomes(folder):
            self.decided.accept(outcome)

    def add(self, outcomes: list[Outcome]) -> list[Outcome]:
        """Record those that are the first of their mini-batch; returns them. Not durable before `sync()`."""
        accepted = [outcome for outcome in outcomes if self.decided.accept(outcome)]
        if accepted:
            self._log.append(encode_list([encode(outcome) for outcome in accepted]))
        return accepted

    def sync(self) -> None:
        self._log.sync()

    def close(self) -> None:
        self._log.close()


def read_outcomes(folder: Path) -> Iterator[Outcome]:
    """Every recorded outcome, in the order of the log."""
    for _, _, raw in read_term_log(folder, NAME):
        yield from decode_list(raw)


def read_decisions(folder: Path) -> Iterator[Outcome]:
    """The decisions: what `read_outcomes` yields, without what the first-wins rule drops.

    A mini-batch that failed and was retried by the user comes twice, the later generation later.
    """
    decided = Decided()
    return (outcome for outcome in read_outcomes(folder) if decided.accept(outcome))
