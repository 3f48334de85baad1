"""Isolation: what a node knows of a mini-batch that has failed for good and whose items are run apart. Pure, no I/O.

The worker halves parts until the guilty items are alone (`worker/execution/isolation.py`). Here is what remains when it
dies: the parts that have failed, which the next worker doesn't call again, and the number of calls that are left.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final, NamedTuple, Self

import msgspec

from parallelrun_core.wire.error_kinds import place_of
from parallelrun_core.wire.message import RetriedItems
from parallelrun_core.wire.outcome import Failure, LostItems, Outcome, PartTry

_FEWEST_CALLS: Final = 64
_CALLS_PER_HALVING: Final = 8
_MOST_MESSAGE: Final = 300
_NOT_RUN: Final = Failure("RUN_EXCEPTION", "This item was not run again: too many others had failed.")
ISOLATABLE: Final = frozenset(
    {"RUN_EXCEPTION", "RUN_TIMEOUT", "SIGNAL", "OOM_KILLED", "GPU_OUT_OF_MEMORY", "EXITED", "INPUT_UNREADABLE"}
)
"""Categories of failures for which a few items can be to blame."""

PartOf = tuple[int, int]
"""Index of the first item, and number of items."""


class PartEvent(NamedTuple):
    """A call of run() for a part has begun, or ended."""

    part: PartOf
    has_begun: bool
    """False: it has ended."""
    run_s: float = 0.0
    failure: Failure | None = None


def most_calls(items: int) -> int:
    """Return how often run() may be called for parts of a mini-batch with so many items."""
    return max(_FEWEST_CALLS, math.ceil(_CALLS_PER_HALVING * math.log2(max(items, 2))))


@dataclass(slots=True)
class Isolation:
    """The items of one mini-batch, run apart.

    Args:
        failure: why the mini-batch has failed as a whole.
        items: how many it has, as far as that is known.
    """

    failure: Failure
    items: int
    running: PartOf | None = None
    """The part that is run now."""
    began: float = 0.0
    """Time when it was called, in seconds since the epoch."""
    failed: dict[PartOf, Failure] = field(default_factory=dict)
    good: list[PartOf] = field(default_factory=list)
    """Parts that the present worker has run: their rows are gone if it dies."""
    parts: list[PartTry] = field(default_factory=list)
    """All calls so far; that for the whole mini-batch is the first, if there was one."""
    retried: RetriedItems | None = None
    """Only these items are run, as a user has asked; the rows of the others are kept."""

    @classmethod
    def of(cls, whole: Outcome, failure: Failure) -> Self:
        """Return that of a mini-batch whose last try has failed like this."""
        first = PartTry(0, whole.items, whole.process, whole.started, whole.run_s, _brief(failure))
        return cls(failure, whole.items, parts=[first])

    @classmethod
    def again(cls, items: RetriedItems) -> Self:
        """Return that of a mini-batch some of whose items have failed before, and are run again."""
        return cls(_NOT_RUN, items.items, retried=items)

    @property
    def calls_left(self) -> int:
        """Return how many more calls are allowed."""
        retried = len(self.retried.lost) if self.retried is not None else 0
        return max(0, most_calls(self.items) + retried - len(self.parts) + 1)

    def asked(self, kind: int, other_rows: bytes = b"") -> bytes:
        """Return what comes before the payload, for a delivery of this kind.

        Args:
            other_rows: the rows of the items that are not run again.
        """
        plan: dict[str, Any] = {"kind": kind, "failed": [*self.failed], "calls": self.calls_left}
        self.good.clear()
        if self.retried is not None:
            plan |= {"only": self.retried.lost, "kept_rows": self.retried.rows, "kept_bytes": len(other_rows)}
        return msgspec.json.encode(plan) + b"\n" + other_rows

    def heard(self, event: PartEvent, process: str, at: float) -> None:
        """Record what the worker says of a part.

        Args:
            at: now, in seconds since the epoch.

        Raises:
            LookupError: this is not the part that it runs.
        """
        if event.has_begun:
            self.running, self.began = event.part, at
            if self.retried is not None and not _is_within(event.part, self.retried.lost):
                self.retried = None  # the rows of the others can't be told apart, so all items are run
            return
        if event.part != self.running:
            raise LookupError(f"the worker has run the part {event.part} before it has begun it")
        self._ended(event, process)

    def died(self, failure: Failure, process: str, run_s: float) -> bool:
        """Record that the worker died; returns whether another one can go on: it ran a part, so that one has failed."""
        if self.running is None:
            return False
        self._ended(PartEvent(self.running, has_begun=False, run_s=run_s, failure=failure), process)
        return True

    def _ended(self, event: PartEvent, process: str) -> None:
        self.running = None
        brief = None if event.failure is None else _brief(event.failure)
        self.parts.append(PartTry(*event.part, process, self.began, event.run_s, brief))
        if event.failure is None:
            self.good.append(event.part)
        else:
            self.failed[event.part] = event.failure

    def outcome(self, whole: Outcome, detail: str) -> Outcome:
        """Return the outcome of the mini-batch, with its items that have failed.

        Args:
            whole: as the worker has answered last: its rows are those of the good parts.
            detail: of the mini-batch, as for a failed try.
        """
        if whole.failure is not None:  # the rows can't be told apart by item: it fails as it had before
            why = whole.failure.message.removeprefix("Uneven: ")
            message = f"{self.failure.message} (Its items could not be run apart: {why})"
            failure = msgspec.structs.replace(self.failure, message=message)
            return msgspec.structs.replace(whole, status="failed", failure=failure, parts=tuple(self.parts), rows=0)
        good = [*self.good, *self._kept(whole.items)]
        missing = _missing(good, self.failed, whole.items)
        # One traceback for the user; a million of them must not fill the disk.
        whys = [self._why(part) for part in missing]
        lost = tuple(
            LostItems(*part, _brief(why) if at else why)
            for at, (part, why) in enumerate(zip(missing, whys, strict=True))
        )
        if good:
            return msgspec.structs.replace(whole, parts=tuple(self.parts), lost=lost, detail=detail if lost else "")
        return msgspec.structs.replace(
            whole, status="failed", failure=self.failure, parts=tuple(self.parts), lost=lost, detail=detail
        )

    def _kept(self, items: int) -> list[PartOf]:
        """Return the parts that are not run again, as they went well before."""
        return [] if self.retried is None else _missing(self.retried.lost, (), items)

    def _why(self, part: PartOf) -> Failure:
        """Return why items have failed: the error of the smallest part that they are all in."""
        first, count = part
        around = [each for each in self.failed if each[0] <= first and first + count <= each[0] + each[1]]
        return self.failed[min(around, key=lambda each: each[1])] if around else self.failure


def _is_within(part: PartOf, others: Iterable[PartOf]) -> bool:
    first, count = part
    return any(begin <= first and first + count <= begin + items for begin, items in others)


def _missing(good: Iterable[PartOf], failed: Iterable[PartOf], items: int) -> list[PartOf]:
    """Return the items that are in no good part, cut where a part that has failed begins or ends."""
    good = sorted(good)
    cuts = {0, items, *(edge for first, count in (*good, *failed) for edge in (first, first + count))}
    edges = sorted(edge for edge in cuts if edge <= items)
    begins = {first: first + count for first, count in good}
    missing, end_of_good = [], 0
    for first, end in pairwise(edges):
        end_of_good = max(end_of_good, begins.get(first, 0))
        if end > end_of_good:
            missing.append((first, end - first))
    return missing


def _brief(failure: Failure) -> Failure:
    """Return a failure as it is kept for one of many items: with the place in the script, and no traceback."""
    return Failure(failure.category, failure.message[:_MOST_MESSAGE], place_of(failure.traceback))
