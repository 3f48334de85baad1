"""The failed tries of a job by kind, as they are read."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import msgspec

from parallelrun_core.wire.error_kinds import Kind, kind_of, place_of
from parallelrun_core.wire.outcome import Failure, Outcome

MOST_KINDS: Final = 200
_MOST_SAMPLES: Final = 10
_MOST_KNOWN: Final = 4096
"""Failures whose kind is remembered: a million equal ones are not looked at one by one."""


class SavedKind(msgspec.Struct, frozen=True, array_like=True):
    """A kind of failures as a file has it."""

    first: Outcome
    count: int
    has_several_messages: bool
    mini_batches: list[int]


@dataclass(slots=True)
class KindSoFar:
    """Failed tries of one kind."""

    first: Outcome
    failure: Failure
    """The first failure of the kind."""
    place: str
    count: int = 0
    has_several_messages: bool = False
    mini_batches: list[int] = field(default_factory=list)


class KindsSoFar:
    """The kinds of failures so far. What is in it is as it was recorded: mask it before it is shown."""

    def __init__(self) -> None:
        self.count = 0
        self.left_out = 0
        """Those of kinds beyond the limit."""
        self._by_kind: dict[Kind, KindSoFar] = {}
        self._known: dict[Failure, KindSoFar | None] = {}

    def add(self, outcome: Outcome) -> None:
        """Count a try that has failed."""
        failure = outcome.failure
        if failure is None:
            return
        self.count += 1
        kind = self._known[failure] if failure in self._known else self._kind(outcome, failure)
        if kind is None:
            self.left_out += 1
            return
        kind.count += 1
        kind.has_several_messages = kind.has_several_messages or failure.message != kind.failure.message
        if len(kind.mini_batches) < _MOST_SAMPLES and outcome.mini_batch not in kind.mini_batches:
            kind.mini_batches.append(outcome.mini_batch)

    def _kind(self, outcome: Outcome, failure: Failure) -> KindSoFar | None:
        name = kind_of(failure)
        kind = self._by_kind.get(name)
        if kind is None and len(self._by_kind) < MOST_KINDS:
            kind = self._by_kind[name] = KindSoFar(outcome, failure, place_of(failure.traceback))
        if len(self._known) >= _MOST_KNOWN:
            self._known.clear()
        self._known[failure] = kind
        return kind

    def saved(self) -> list[SavedKind]:
        """Return all kinds, in the order in which they came."""
        return [
            SavedKind(kind.first, kind.count, kind.has_several_messages, kind.mini_batches)
            for kind in self._by_kind.values()
        ]

    def restore(self, kinds: list[SavedKind], *, count: int, left_out: int) -> None:
        """Begin with what `saved` has returned."""
        self.count, self.left_out = count, left_out
        for saved in kinds:
            if (failure := saved.first.failure) is not None and (kind := self._kind(saved.first, failure)) is not None:
                kind.count, kind.has_several_messages = saved.count, saved.has_several_messages
                kind.mini_batches = list(saved.mini_batches)

    def most_frequent(self) -> list[KindSoFar]:
        """All kinds, the most frequent first."""
        return sorted(self._by_kind.values(), key=lambda kind: -kind.count)
