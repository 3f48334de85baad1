"""Notices mini-batches that nobody has and nobody waits for, says so, and puts them up again.

Nothing is decided twice for it: what agents have finished is taken from their journals first, Redis checks each one
once more (`republish.lua`), and the first decision counts anyway.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

from parallelrun_core.figures import counted
from parallelrun_core.folder.manifest import ManifestCursor
from parallelrun_master.leader.job_context import JobContext
from parallelrun_master.ledger.journals import recover_journals
from parallelrun_master.policy.contradictions import Counts, StillWatch, Whereabouts, whereabouts
from parallelrun_master.publishing.publisher import for_redis

_AT_ONCE = 500
_BATCH = 5000
"""How many are put up before others of them are done: Redis shall hold no more than a window of messages."""
_FEW = 1000


class Watchdog:
    """Compares the ledger with Redis whenever nothing has moved for some seconds."""

    def __init__(self, job: JobContext) -> None:
        self._job = job
        self._watch = StillWatch()
        self._knows = bool(job.ledger.lost or job.ledger.damage)
        """Something is known to be missing: nobody has to wait until nothing moves, and it has been said."""
        self._rest: list[int] = []
        """What is still to be put up."""

    def check(self, published: int, outstanding: int, leased: int, now: float) -> bool:
        """Compare, if it is time; returns whether something had to be mended.

        Raises:
            Fenced: another term has begun.
            CorruptLog: the manifest no longer has what must be run again.
        """
        if self._rest and outstanding < _FEW:
            self._put_up_some()
            return True
        if self._knows:
            self._knows = False
            if stray := self._whereabouts(published):
                recovered, again = self._mend(stray)
                self._job.reports.say(f"Recovered {counted(recovered, 'mini-batch')}; to be run again: {again:,}.")
                return True
        counts = Counts(self._job.ledger.progress.decided, published, outstanding, leased)
        if not self._watch.is_due(counts, now):
            return False
        self._job.restore_generation()  # agents that take the job for an earlier one can't work for it
        lasting = self._watch.lasting(self._whereabouts(published), now)
        if lasting is None:
            return False
        recovered, again = self._mend(lasting)
        lost = len(lasting.nowhere) + len(lasting.unreachable)
        self._job.damaged(
            f"{counted(lost, 'mini-batch')} neither decided, nor waiting, nor with a node: {recovered:,} of them were "
            f"taken from the journals of the nodes, {again:,} are run again",
            mini_batches=sorted((*lasting.nowhere, *lasting.unreachable))[:_AT_ONCE],
        )
        return True

    def _whereabouts(self, published: int) -> Whereabouts:
        undecided = frozenset(self._job.ledger.decided.undecided(published))
        if not undecided:
            return Whereabouts(frozenset(), frozenset())
        return whereabouts(undecided, *self._job.queue.whereabouts())

    def _mend(self, stray: Whereabouts) -> tuple[int, int]:
        """Returns how many could be taken from the journals, and how many are run again."""
        recovered = recover_journals(self._job)
        decided = self._job.ledger.decided
        self._rest = sorted(each for each in (*stray.nowhere, *stray.unreachable) if each not in decided)
        again = len(self._rest)
        self._put_up_some()
        return recovered, again

    def _put_up_some(self) -> None:
        """Put up the first of what is left. What Redis doesn't take now is noticed again, if it has to be."""
        queue, last_seen = self._job.queue, self._job.ledger.last_seen
        decided = self._job.ledger.decided
        some, self._rest = [each for each in self._rest[:_BATCH] if each not in decided], self._rest[_BATCH:]
        on_redis, _, _ = queue.whereabouts()
        messages = dict(self._messages([each for each in some if each not in on_redis]))
        for first in range(0, len(some), _AT_ONCE):
            queue.republish(last_seen, [(each, messages.get(each, b"")) for each in some[first : first + _AT_ONCE]])

    def _messages(self, mini_batches: list[int]) -> Iterator[tuple[int, bytes]]:
        """The messages of these, from the manifest; they are in order."""
        if not mini_batches:
            return
        with closing(ManifestCursor(self._job.folder.path, first=mini_batches[0])) as cursor:
            missing = set(mini_batches)
            while missing:
                entry = cursor.read_whole()
                if entry.mini_batch in missing:
                    missing.discard(entry.mini_batch)
                    yield entry.mini_batch, for_redis(entry)
