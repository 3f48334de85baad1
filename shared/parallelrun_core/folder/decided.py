"""Decided mini-batches: the rule by which the first decision of each wins, and the totals of those that it accepts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from parallelrun_core.wire.data_warnings import DataWarning, WarningTotals
from parallelrun_core.wire.outcome import Outcome, RowsPlace

_MOST_WITH_LOST = 100_000
"""Mini-batches whose failed items can be tried again by one request."""
_STEP_BYTES = 4096
"""A table that grows by steps is cheaper than one that grows with each entry."""


class FirstWins:
    """The set of mini-batches that have a decision, at a byte each: for whoever reads a log and needs no totals."""

    _OPEN, _FAILED, _DONE = 0, 1, 2

    def __init__(self) -> None:
        self._states = bytearray()
        self._failed_in: dict[int, int] = {}
        """The generation of the last failure of each, even if it was reopened since."""
        self._lost: set[tuple[int, str]] = set()
        """Mini-batch and token of each decision that was lost."""
        self.count = 0
        """Mini-batches that have a decision."""

    def __contains__(self, mini_batch: int) -> bool:
        return mini_batch < len(self._states) and self._states[mini_batch] != self._OPEN

    def has_any(self, first: int, end: int) -> bool:
        """Return whether a mini-batch from `first` up to `end`, exclusively, has a decision."""
        return any(self._states[first:end])

    @property
    def end(self) -> int:
        """The index after the last mini-batch that has a decision."""
        return len(self._states.rstrip(b"\0"))

    def undecided(self, end: int) -> Iterator[int]:
        """The mini-batches before `end` that have no decision."""
        states = self._states
        at = states.find(self._OPEN)
        while 0 <= at < end:
            yield at
            at = states.find(self._OPEN, at + 1)
        yield from range(len(states), end)

    def accept(self, outcome: RowsPlace) -> bool:
        """Return whether this outcome is the decision of its mini-batch."""
        mini_batch = outcome.mini_batch
        if mini_batch >= len(self._states):
            self._states.extend(bytes(mini_batch + _STEP_BYTES - len(self._states)))
        state = self._states[mini_batch]
        if (state or self._failed_in or self._lost) and self._is_late(outcome, state):
            return False
        if outcome.status == "done":
            self._states[mini_batch] = self._DONE
        elif outcome.status == "failed":
            self._states[mini_batch] = self._FAILED
            self._failed_in[mini_batch] = outcome.generation
        else:
            return False  # it was lost, and the record of the decision itself can't be read
        if not state:
            self.count += 1
        return True

    def accepted(self, outcomes: Sequence[RowsPlace]) -> list[RowsPlace]:
        """Accept outcomes in this order; returns those that are decisions.

        Those of a job without failures cost half as much as by `accept`.
        """
        if self._failed_in or self._lost:
            return list(filter(self.accept, outcomes))
        states, accepted = self._states, []
        for outcome in outcomes:
            mini_batch = outcome.mini_batch
            if outcome.status == "done" and mini_batch < len(states) and not states[mini_batch]:
                states[mini_batch] = 2
                self.count += 1
                accepted.append(outcome)
            elif self.accept(outcome):
                accepted.append(outcome)
        return accepted

    def _is_late(self, outcome: RowsPlace, state: int) -> bool:
        """Return whether the earlier decision stands."""
        if self._lost and (outcome.mini_batch, outcome.token) in self._lost:
            return True
        return state == self._DONE or outcome.generation <= self._failed_in.get(outcome.mini_batch, -1)

    def withdraw(self, lost: RowsPlace) -> bool:
        """Let a mini-batch be decided again whose decision, but for the status, is this one; whether it had one."""
        self._lost.add((lost.mini_batch, lost.token))
        self._failed_in.pop(lost.mini_batch, None)
        if lost.mini_batch >= len(self._states) or self._states[lost.mini_batch] != self._DONE:
            return False
        self._states[lost.mini_batch] = self._OPEN
        self.count -= 1
        return True

    def drop(self, place: RowsPlace) -> None:
        """Leave out a decision that a later one has replaced, wherever it comes."""
        self._lost.add((place.mini_batch, place.token))

    def reopen_done(self, mini_batch: int) -> None:
        """Let a mini-batch be decided again that is done."""
        self._states[mini_batch] = self._OPEN
        self.count -= 1

    def reopen(self, mini_batches: Iterable[int], generation: int) -> list[int]:
        """Let those that failed in an earlier generation be decided again; returns them."""
        reopened = [each for each in mini_batches if self._failed_in[each] < generation]
        for mini_batch in reopened:
            self._states[mini_batch] = self._OPEN
        self.count -= len(reopened)
        return reopened


class Decided:
    """The set of mini-batches that have a decision, and the totals of the decisions."""

    def __init__(self) -> None:
        self._first = FirstWins()
        self._failed_items: dict[int, int] = {}
        """Items of each mini-batch that counts as failed; 0: nobody has counted them."""
        self._uncounted = 0
        """Those of `_failed_items` with 0 items."""
        self.typical_items = 1
        """Items that a mini-batch is taken to have as long as those of none have been counted."""
        self.done = 0
        self.empty = 0
        """Those of `done` that have no items."""
        self.items_done = 0
        self.items_short = 0
        """Items of `done` for which run() returned no row, and nothing was raised."""
        self.items_isolated = 0
        """Items of `done` that have failed when they were run apart from the others of their mini-batch."""
        self._items_of_failed = 0
        self.rows = 0
        self.line_breaks = 0
        self.shortened = 0
        self.waits_s: dict[str, float] = {}
        """Seconds for which those of `done` have waited for permits, by limit."""
        self.waits_of_s = 0.0
        """Seconds that those of `done` took which have asked for permits."""
        self.warnings = WarningTotals()
        self._failed_warnings: dict[int, tuple[DataWarning, ...]] = {}
        self._with_lost: dict[int, Outcome] = {}
        """Decisions of mini-batches some of whose items have failed, without what nobody asks for again."""
        self.retried: dict[int, Outcome] = {}
        """Those of them that are to be decided again, as the items are tried once more; each stands if that fails."""

    def __contains__(self, mini_batch: int) -> bool:
        return mini_batch in self._first

    def has_any(self, first: int, end: int) -> bool:
        """Return whether a mini-batch from `first` up to `end`, exclusively, has a decision."""
        return self._first.has_any(first, end)

    @property
    def end(self) -> int:
        """The index after the last mini-batch that has a decision."""
        return self._first.end

    def undecided(self, end: int) -> Iterator[int]:
        """The mini-batches before `end` that have no decision."""
        return self._first.undecided(end)

    @property
    def count(self) -> int:
        """Mini-batches that have a decision."""
        return self._first.count

    @property
    def failed(self) -> int:
        """Return how many mini-batches have failed."""
        return len(self._failed_items)

    @property
    def items_failed(self) -> int:
        """Return how many items count as failed, those included whose number is estimated (reference §3.5)."""
        return self._items_of_failed + self.items_short + self.items_isolated + self.items_estimated

    @property
    def items_estimated(self) -> int:
        """Return how many items the mini-batches may have that failed before anybody had counted these.

        Each is taken to have as many as the others have on average, and 1 at least: thresholds must see it.
        """
        if not self._uncounted:
            return 0
        counted = self.done - self.empty + self.failed - self._uncounted
        items = self.items_done + self.items_short + self.items_isolated + self._items_of_failed
        return self._uncounted * (max(1, round(items / counted)) if counted else self.typical_items)

    def accept(self, outcome: Outcome) -> bool:
        """Return whether this outcome is the decision of its mini-batch; if so, it is counted."""
        if outcome.mini_batch in self._with_lost and outcome.status == "done":
            self._replace(outcome)
        if not self._first.accept(outcome):
            return False
        if self._failed_items:
            self._take_out(outcome.mini_batch)
        if self.retried:
            self.retried.pop(outcome.mini_batch, None)
        if outcome.status == "done":
            self._count_done(outcome)
            if outcome.lost and len(self._with_lost) < _MOST_WITH_LOST:
                self._with_lost[outcome.mini_batch] = replace(outcome, parts=(), detail="")
        else:
            self._failed_items[outcome.mini_batch] = outcome.items
            self._items_of_failed += outcome.items
            self._uncounted += not outcome.items
            if outcome.warnings:
                self.warnings.add(outcome.warnings)
                self._failed_warnings[outcome.mini_batch] = outcome.warnings
        return True

    def withdraw(self, lost: Outcome) -> bool:
        """Let a mini-batch be decided again whose decision, but for the status, is this one; whether it had one."""
        if not self._first.withdraw(lost):
            return False
        self._count_done(lost, -1)
        self._with_lost.pop(lost.mini_batch, None)
        return True

    def _replace(self, outcome: Outcome) -> None:
        """Take out a success of an earlier generation: items that had failed in it were tried again since."""
        earlier = self._with_lost[outcome.mini_batch]
        if outcome.generation > earlier.generation:
            self._take_back(earlier)

    def _take_back(self, earlier: Outcome) -> None:
        del self._with_lost[earlier.mini_batch]
        self._first.reopen_done(earlier.mini_batch)
        self._count_done(earlier, -1)

    def reopen_items(self, generation: int, mini_batches: list[int] | None) -> list[int]:
        """Let those some of whose items have failed in an earlier generation be decided again; returns them."""
        chosen = self._with_lost.keys() if mini_batches is None else self._with_lost.keys() & set(mini_batches)
        reopened = [self._with_lost[each] for each in chosen if self._with_lost[each].generation < generation]
        for earlier in reopened:
            self._take_back(earlier)
            self.retried[earlier.mini_batch] = earlier
        return [earlier.mini_batch for earlier in reopened]

    def outcome_of_retry(self, outcome: Outcome) -> Outcome:
        """Return what becomes of a mini-batch whose failed items were tried again: its earlier success stands if this
        outcome has fewer rows."""
        earlier = self.retried.get(outcome.mini_batch)
        if earlier is None or (outcome.status == "done" and outcome.rows >= earlier.rows):
            return outcome
        lost = earlier.lost
        if outcome.failure is not None:
            lost = tuple(replace(each, failure=replace(outcome.failure, traceback="")) for each in lost)
        token = outcome.token or f"{earlier.token}.{outcome.generation}"
        return replace(earlier, generation=outcome.generation, token=token, lost=lost)

    def _count_done(self, outcome: Outcome, sign: int = 1) -> None:
        items, rows = outcome.items, outcome.rows
        self.done += sign
        self.rows += sign * rows
        if rows < items:
            self.items_done += sign * rows
            isolated = outcome.items_lost if outcome.lost else 0
            self.items_isolated += sign * isolated
            self.items_short += sign * (items - rows - isolated)
        else:
            self.items_done += sign * items
        # Hardly any mini-batch has something of these.
        if not items:
            self.empty += sign
        if outcome.line_breaks:
            self.line_breaks += sign * outcome.line_breaks
        if outcome.shortened:
            self.shortened += sign * outcome.shortened
        if outcome.warnings:
            self.warnings.add(outcome.warnings, sign)
        if outcome.waits:
            self._count_waits(outcome, sign)

    def _count_waits(self, outcome: Outcome, sign: int) -> None:
        self.waits_of_s += sign * outcome.elapsed_s
        for limit, seconds in outcome.waits.items():
            self.waits_s[limit] = self.waits_s.get(limit, 0.0) + sign * seconds

    def reopen(self, generation: int, mini_batches: list[int] | None) -> list[int]:
        """Let those that failed in an earlier generation (all of them, or these) be decided again; returns them."""
        failed = self._failed_items.keys()
        chosen = failed if mini_batches is None else failed & set(mini_batches)
        reopened = self._first.reopen(chosen, generation)
        for mini_batch in reopened:
            self._take_out(mini_batch)
        return reopened

    def _take_out(self, mini_batch: int) -> None:
        """Take what was counted for a mini-batch's failure out of the totals."""
        items = self._failed_items.pop(mini_batch, None)
        if items is not None:
            self._items_of_failed -= items
            self._uncounted -= not items
        if mini_batch in self._failed_warnings:
            self.warnings.add(self._failed_warnings.pop(mini_batch), -1)
