"""Failed tries that were followed by another: the decision log has only the last try of a mini-batch.

A term log (see `core/term_log`) of outcomes with status `retry`, synced before Redis may forget them. From it and the
decisions a leader that takes over gets the same error counts as the one before. It is created for the first such try:
most jobs have none.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from parallelrun_core.folder.record_log import OnDamage, RecordWriter
from parallelrun_core.folder.term_log import accept, open_term, read_term_log
from parallelrun_core.wire.error_kinds import place_of
from parallelrun_core.wire.outcome import Failure, Outcome, decode_list, encode, encode_list

NAME: Final = "retries"


class RetryLog:
    """A leader's own file, which may never be created, and those of the leaders before it."""

    def __init__(self, folder: Path, term: int) -> None:
        self._folder = folder
        self._term = term
        # Now: what a paused leader adds later, Redis delivers again. Who reads it is told of damage.
        self._accepted = accept(folder, NAME, on_damage=lambda _: None)
        self._log: RecordWriter | None = None
        self._is_synced = True

    def earlier(self, *, on_damage: OnDamage = lambda _: None) -> Iterator[Outcome]:
        """Return what earlier leaders have noted, in order. It has to be read before anything is added.

        Args:
            on_damage: told of each damaged range, which is passed over.
        """
        for term, _, raw in read_term_log(self._folder, NAME, on_damage=on_damage):
            if str(term) in self._accepted:
                yield from decode_list(raw)

    def add(self, outcomes: list[Outcome]) -> None:
        """Note these. Not durable before `sync()`."""
        if not outcomes:
            return
        if self._log is None:
            self._log = open_term(self._folder, NAME, self._term, accepted=self._accepted)
        self._log.append(encode_list([encode(outcome) for outcome in outcomes]))
        self._is_synced = False

    def sync(self) -> None:
        if self._log is not None and not self._is_synced:
            self._log.sync()
            self._is_synced = True

    def close(self) -> None:
        if self._log is not None:
            self._log.close()


def shortened(outcome: Outcome) -> Outcome:
    """An outcome whose kind of error is known already, without details: a million of them must not fill the disk."""
    failure = outcome.failure
    if failure is None:
        return outcome
    brief = Failure(failure.category, failure.message, place_of(failure.traceback))
    return msgspec.structs.replace(outcome, failure=brief, detail="")
