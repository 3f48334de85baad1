"""The cost of a job, as its nodes have reported it: a term log (see `core/term_log`) that is synced before Redis may
forget the reports. It is created for the first of them: most jobs have none.

Each stay of a node in the job reports a total, so a report that is read again changes nothing.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from parallelrun_core.folder.costs import NAME, decode_costs
from parallelrun_core.folder.record_log import OnDamage, RecordWriter
from parallelrun_core.folder.term_log import accept, open_term, read_term_log
from parallelrun_core.wire.costs import Spent, in_usd


class CostLog:
    """A leader's own file, which may never be created, after those of the leaders before it.

    Args:
        on_damage: told of each damaged range, which is passed over.
    """

    def __init__(self, folder: Path, term: int, *, on_damage: OnDamage) -> None:
        self._folder = folder
        self._term = term
        # Now: what a paused leader adds later, Redis delivers again. Who reads it is told of damage.
        self._accepted = accept(folder, NAME, on_damage=lambda _: None)
        self._log: RecordWriter | None = None
        self._nano: dict[str, int] = {}
        self._unrecorded: dict[str, Spent] = {}
        for earlier, _, raw in read_term_log(folder, NAME, on_damage=on_damage):
            if str(earlier) in self._accepted:
                for spent in decode_costs(raw):
                    self._count(spent)

    @property
    def usd(self) -> float:
        """Return what all have spent, in US dollars."""
        return in_usd(sum(self._nano.values()))

    def _count(self, spent: Spent) -> bool:
        """Return whether it is more than was known."""
        is_new = spent.nano > self._nano.get(spent.spender, 0)
        if is_new:
            self._nano[spent.spender] = spent.nano
        return is_new

    def add(self, spent: Spent) -> None:
        """Count a report. Not durable before `sync()`."""
        if self._count(spent):
            self._unrecorded[spent.spender] = spent

    def sync(self) -> None:
        """Make durable what was added."""
        if not self._unrecorded:
            return
        if self._log is None:
            self._log = open_term(self._folder, NAME, self._term, accepted=self._accepted)
        self._log.append(msgspec.json.encode(list(self._unrecorded.values())))
        self._log.sync()
        self._unrecorded.clear()

    def close(self) -> None:
        if self._log is not None:
            self._log.close()
