"""The decision log: the one authority on what became of each mini-batch.

A term log (see `term_log`); each record is a JSON array of outcomes with status `done` or `failed`, as the
leader accepted them. The first decision of a (mini-batch, generation) counts, and a later generation (a retry
that the user asked for) replaces a failure, and a success some of whose items have failed, if it has at least as many
rows: never any other success.

When the disk has lost the rows of a decision, it is recorded again with status `lost`. From there on it doesn't count,
nor does anything else with its token, and its mini-batch can be decided once more. A file with such a record, and all
that follow it, have a higher schema, so earlier releases refuse them; likewise one with a second success.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path

from msgspec.structs import replace

from parallelrun_core.documents.schema import LOST_DECISIONS, RETRIED_ITEMS, SCHEMA
from parallelrun_core.folder.decided import Decided, FirstWins
from parallelrun_core.folder.record_log import OnDamage, RecordWriter
from parallelrun_core.folder.term_log import accept, latest_schema, open_term, read_term_log
from parallelrun_core.wire.outcome import LostRows, Outcome, RowsPlace, decode_list, decode_places, encode_all

NAME = "decisions"


class DecisionWriter:
    """The leader's own file of the decision log.

    Args:
        folder: the job's.
        term: the leader's; its file is created.
        seen: called with every decision of earlier terms, in order, and with those that were lost.
        lost: what earlier terms have decided is lost, too, when its rows are these.
        retries_items: whether a mini-batch may have a second success, with items that had failed before.
        on_damage: told of each range of the log that can't be read; who decided what is missing there is unknown.

    Raises:
        FileExistsError: this term has a decision log already.
    """

    def __init__(
        self,
        folder: Path,
        term: int,
        on_outcome: Callable[[Outcome], object] = lambda _: None,
        *,
        lost: Sequence[LostRows] = (),
        retries_items: bool = False,
        on_damage: OnDamage = lambda _: None,
    ) -> None:
        self.decided = Decided()
        schema = max(LOST_DECISIONS if lost else SCHEMA, latest_schema(folder, NAME))
        schema = RETRIED_ITEMS if retries_items else schema
        # Our own file first: its header ends those of earlier leaders, which may still be writing.
        accepted = accept(folder, NAME, on_damage=on_damage)
        self._log: RecordWriter = open_term(folder, NAME, term, accepted=accepted, schema=schema)
        lost_rows = {rows.mini_batch: rows for rows in lost}
        present: dict[int, Outcome] = {}
        for outcome in read_outcomes(folder, on_damage=on_damage):
            if self.decided.accept(outcome):
                on_outcome(outcome)
                if lost_rows and outcome.mini_batch in lost_rows:
                    present[outcome.mini_batch] = outcome
            elif outcome.status == "lost" and self.decided.withdraw(outcome):
                on_outcome(outcome)
        self.lost = [replace(present[each.mini_batch], status="lost") for each in lost if _is_of(each, present)]
        """Those decisions that this term has found to be lost."""
        for outcome in filter(self.decided.withdraw, self.lost):
            on_outcome(outcome)
        if self.lost:
            self._log.append(encode_all(self.lost))
            self._log.sync()

    def add(self, outcomes: list[Outcome], encoded: Sequence[bytes] = ()) -> list[Outcome]:
        """Record those that are decisions; returns them. Not durable before `sync()`.

        Args:
            encoded: the same outcomes as JSON arrays, if the caller has them: they need not be encoded again.
        """
        if self.decided.retried:
            outcomes, encoded = [self.decided.outcome_of_retry(outcome) for outcome in outcomes], ()
        accepted = [outcome for outcome in outcomes if self.decided.accept(outcome)]
        if encoded and len(accepted) == len(outcomes):
            self._log.extend(encoded)
        elif accepted:
            self._log.append(encode_all(accepted))
        return accepted

    def sync(self) -> None:
        self._log.sync()

    def close(self) -> None:
        self._log.close()


def _is_of(lost: LostRows, present: dict[int, Outcome]) -> bool:
    """Return whether these are the rows of a present decision."""
    outcome = present.get(lost.mini_batch)
    return outcome is not None and (outcome.part, outcome.offset) == (lost.part, lost.offset) and bool(outcome.length)


def read_outcomes(folder: Path, *, on_damage: OnDamage = lambda _: None) -> Iterator[Outcome]:
    """Every recorded outcome that can be read, in the order of the log.

    Args:
        on_damage: told of each damaged range, which is passed over.
    """
    for _, _, raw in read_term_log(folder, NAME, on_damage=on_damage):
        yield from decode_list(raw)


def read_places(folder: Path, *, on_damage: OnDamage = lambda _: None) -> Iterator[RowsPlace]:
    """Return where the rows of every recorded outcome are, in the order of the log: reads quicker
    than `read_outcomes`.
    """
    return chain.from_iterable(read_places_of_records(folder, on_damage=on_damage))


def read_places_of_records(folder: Path, *, on_damage: OnDamage = lambda _: None) -> Iterator[list[RowsPlace]]:
    """Return the same as `read_places`, a list for each record of the log."""
    for _, _, raw in read_term_log(folder, NAME, on_damage=on_damage):
        yield decode_places(raw)


def read_decisions(folder: Path) -> Iterator[Outcome]:
    """The decisions: the recorded outcomes without those that the first-wins rule drops, or that were lost since.

    A mini-batch that failed and was retried by the user comes twice, in the order of its generations.
    """
    return filter(first_wins(folder).accept, read_outcomes(folder))


def first_wins(folder: Path) -> FirstWins:
    """The rule, for whoever reads this log: it knows already which decisions were lost, or replaced since."""
    first = FirstWins()
    if latest_schema(folder, NAME) >= LOST_DECISIONS:
        with_lost: dict[int, RowsPlace] = {}
        for place in read_places(folder):
            earlier = with_lost.get(place.mini_batch)
            if place.status == "lost":
                first.withdraw(place)
                with_lost.pop(place.mini_batch, None)
            elif place.status != "done":
                continue
            elif earlier is not None and place.generation > earlier.generation:
                first.drop(earlier)
                with_lost[place.mini_batch] = place
            elif earlier is None and place.rows < place.items:
                with_lost[place.mini_batch] = place
    return first
