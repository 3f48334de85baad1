"""The leader's ledger: outcomes from the stream go into the decision log, and are counted.

An outcome exists once it is in the decision log. So the order is: append, sync, and only then let Redis forget.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path

import msgspec

from parallelrun_core.folder.damage import Damage
from parallelrun_core.folder.decisions import DecisionWriter
from parallelrun_core.folder.session_keys import read_key
from parallelrun_core.layout import Layout
from parallelrun_core.service import failpoints
from parallelrun_core.service.telemetry import logger
from parallelrun_core.store.leader_queue import LeaderQueue
from parallelrun_core.store.outcome_stream import StreamEntry
from parallelrun_core.store.seals import Seals
from parallelrun_core.wire.outcome import LostRows, Outcome, Phase
from parallelrun_core.wire.progress import Progress
from parallelrun_master.ledger.cost_log import CostLog
from parallelrun_master.ledger.retry_log import RetryLog, shortened
from parallelrun_master.policy.error_groups import ErrorGroup, ErrorGroups
from parallelrun_master.policy.refusals import Refusals
from parallelrun_master.reports.failed_items import FailedItems
from parallelrun_master.reports.tries import TryReport

log = logger()

_BEGINNING = b"0-0"
_SYNC_EVERY_S = 0.1
_MOST_RETRIES = 50_000
_RECOVERED_AT_ONCE = 1000


class Ledger:
    """The decisions of one job.

    Args:
        tries: gets each try before Redis may forget it.
        errors: groups and counts failures.
        generation: how often the user has resumed or retried the job.
        lost: rows that the disk has lost: what was decided with them is to be decided again.
        retries_items: whether items that had failed alone were, or are, tried again.

    Raises:
        FileExistsError: this term has a decision log already.
    """

    def __init__(
        self,
        folder: Path,
        queue: LeaderQueue,
        term: int,
        tries: TryReport,
        errors: ErrorGroups,
        *,
        generation: int = 0,
        lost: Sequence[LostRows] = (),
        retries_items: bool = False,
    ) -> None:
        self.progress = Progress()
        self.items_listed = 0
        """Items that the manifest's entries have, as far as these are counted."""
        self.errors = errors
        self.failed_items = FailedItems(errors.mask)
        self._tries = tries
        self._queue = queue
        self._seals = Seals(partial(read_key, Layout(folder).keys))
        self.refusals = Refusals()
        self._last_seen = self._forgotten = _BEGINNING
        self._is_synced = True
        self._synced_at = 0.0
        self.first_try_at = 0.0
        """Begin of the first try that was recorded in this term, in seconds since the epoch; 0: none was."""
        self._recent_retries: dict[tuple[int, str], None] = {}  # Redis may deliver them again
        self._generation = generation
        self._picked_before: Counter[int] = Counter()  # tries in earlier generations, of those that failed then
        self.damage: list[Damage] = []
        """Ranges of the logs that can't be read."""
        self.times_lost: Counter[int] = Counter()
        """How often a mini-batch has lost its decision."""
        self._costs = CostLog(folder, term, on_damage=self.damage.append)
        self.progress.spent_usd = self._costs.usd
        self._retries = RetryLog(folder, term)
        for outcome in self._retries.earlier(on_damage=self.damage.append):
            self._note_retry(outcome)
            self._seen(outcome)
        self._log = DecisionWriter(
            folder, term, on_outcome=self._seen, lost=lost, retries_items=retries_items, on_damage=self.damage.append
        )
        self.lost = [outcome.mini_batch for outcome in self._log.lost]
        """Mini-batches that have lost their decision in this term."""
        self.decided = self._log.decided
        self._show_decided()

    def _seen(self, outcome: Outcome) -> None:
        """An earlier leader has recorded this, or it has been lost since."""
        if outcome.status == "lost":
            self._take_out(outcome.mini_batch)
            self.times_lost[outcome.mini_batch] += 1
            self._picked_before[outcome.mini_batch] += outcome.tries
            return
        self._note_failure(outcome)
        # Without a token it was given up, not tried.
        if outcome.failure is not None and outcome.generation < self._generation and outcome.token:
            self._picked_before[outcome.mini_batch] += 1
        self.progress.retried += outcome.status == "retry"

    def _note_failure(self, outcome: Outcome) -> ErrorGroup | None:
        """Take note of what has failed in a try, if anything has; returns an error that wasn't seen before."""
        if outcome.status != "retry":
            self.failed_items.add(outcome)
        return self.errors.add(outcome)

    def _take_out(self, mini_batch: int) -> None:
        """Take what has failed in a mini-batch out of what has failed for good."""
        self.errors.take_out(mini_batch)
        self.failed_items.take_out(mini_batch)

    def _note_retry(self, outcome: Outcome) -> bool:
        """Take note of a try that failed and was followed by another; whether it is new."""
        key = (outcome.mini_batch, outcome.token)
        is_new = key not in self._recent_retries
        self._recent_retries[key] = None
        if len(self._recent_retries) > _MOST_RETRIES:
            del self._recent_retries[next(iter(self._recent_retries))]
        return is_new

    def reopen(self, generation: int, mini_batches: list[int] | None, *, items: bool = False) -> None:
        """Let those that failed in an earlier generation (all of them, or these) be decided again.

        Args:
            items: also those some of whose items have failed.
        """
        reopened = self.decided.reopen(generation, mini_batches)
        if items:
            reopened += self.decided.reopen_items(generation, mini_batches)
        for mini_batch in reopened:
            self._take_out(mini_batch)
        self._show_decided()

    def _show_decided(self) -> None:
        progress, decided = self.progress, self.decided
        progress.done, progress.failed, progress.rows = decided.done, decided.failed, decided.rows
        progress.items_done, progress.items_failed = decided.items_done, decided.items_failed
        progress.items_short, progress.items_estimated = decided.items_short, decided.items_estimated
        progress.empty = decided.empty
        progress.waits_s, progress.waits_of_s = dict(decided.waits_s), decided.waits_of_s
        # How many rows a table has is known only when they have been read.
        progress.items_scheduled = max(self.items_listed, decided.items_done + decided.items_failed)

    def read(self, *, block_ms: int | None) -> list[StreamEntry]:
        """Return what has come in since the last call; waits for something when `block_ms` is given.

        What no session of this job has sealed is refused and logged: such an entry carries nothing (`refusals`).
        """
        entries = self._queue.read_entries(self._last_seen, self._seals, block_ms=block_ms)
        if not entries:
            self._tries.caught_up()
            return entries
        self._last_seen = entries[-1].entry_id
        self._is_synced = False
        return [self._noted(entry) for entry in entries]

    def _noted(self, entry: StreamEntry) -> StreamEntry:
        """Report what an entry says of workers; what it repeats is left out of it."""
        if entry.refused:
            self._refuse(entry)
        if entry.spent is not None:
            self._costs.add(entry.spent)
            self.progress.spent_usd = self._costs.usd
        for phase in entry.phases:
            self._report_phase(phase)
        failed = entry.init_failure
        if failed is None or not failed.process:
            return entry
        node, process, failure, started, seconds = msgspec.structs.astuple(failed)
        is_new = self._report_phase(Phase(node, process, "INIT", started, seconds, failure))
        return entry if is_new else replace(entry, init_failure=None)

    def _report_phase(self, phase: Phase) -> bool:
        """Return whether it is new."""
        is_new = self._tries.add_phase(phase)
        if is_new:
            self.errors.add_phase(phase)
        return is_new

    def _refuse(self, entry: StreamEntry) -> None:
        if self.refusals.note():
            log.warning(
                "outcome_refused",
                job_id=self._queue.job_id,
                session=entry.refused_from,
                reason=entry.refused,
                count=self.refusals.count,
            )

    def start_over(self) -> None:
        """Redis was restarted and may have forgotten: read its stream from the beginning. Repeats are dropped."""
        self._last_seen = self._forgotten = _BEGINNING
        self._tries.start_over()

    def record(self, outcomes: list[Outcome], encoded: Sequence[bytes] = ()) -> tuple[list[Outcome], list[ErrorGroup]]:
        """Record decisions and count tries; returns the decisions that are new, and errors not seen before.

        Args:
            encoded: the same outcomes as JSON arrays, if the caller has them.
        """
        new_groups = []
        decisions = [outcome for outcome in outcomes if outcome.status != "retry"]
        failed_tries = [outcome for outcome in outcomes if outcome.status == "retry"]
        retries = [outcome for outcome in failed_tries if self._note_retry(outcome)]
        if not self.first_try_at:
            self.first_try_at = min((outcome.started for outcome in outcomes if outcome.started), default=0.0)
        self._is_synced = False
        has_retried = bool(self.decided.retried)
        accepted = self._log.add(decisions, encoded if not failed_tries else ())
        noted = []
        for outcome in (*retries, *accepted):
            if outcome.failure is None and not outcome.lost:
                continue
            new_group = self._note_failure(outcome)
            if new_group is not None:
                new_groups.append(new_group)
            if outcome.status == "retry":
                noted.append(shortened(outcome) if new_group is None else outcome)
        self._retries.add(noted)
        # A leader that takes over finds in the logs what its predecessor has not reported yet.
        ends: Sequence[Outcome] = accepted
        if has_retried:  # an earlier success may stand, whatever became of this try
            numbers = {outcome.mini_batch for outcome in accepted}
            ends = [outcome for outcome in decisions if outcome.mini_batch in numbers]
        tries = (*failed_tries, *decisions) if self._tries.is_catching_up else (*retries, *ends)
        self._tries.add(tries, self._picked_before)
        self.progress.retried += len(retries)
        self._show_decided()
        return accepted, new_groups

    def recover(self, outcomes: Iterable[Outcome]) -> int:
        """Record as decisions what Redis has forgotten, durably; returns how many of them became one."""
        candidates = iter(outcomes)
        recovered = 0
        while group := list(islice(candidates, _RECOVERED_AT_ONCE)):
            recovered += len(self.record(group)[0])
        self._log.sync()
        return recovered

    @property
    def last_seen(self) -> bytes:
        """The last entry of the stream that was read."""
        return self._last_seen

    @property
    def can_trim(self) -> bool:
        """Return whether Redis may still have entries that were read."""
        return self._last_seen != self._forgotten

    def sync_and_trim(self, now: float, *, at_once: bool = False) -> None:
        """Sync what was recorded, then let Redis forget it: every 0.1 s at most, unless it must be at once.

        The sync is done even if Redis has nothing to forget: it may have been set back since they were read.
        """
        if not at_once and now - self._synced_at < _SYNC_EVERY_S:
            return
        if not self._is_synced:
            failpoints.reach("decide.before_sync")
            self._log.sync()
            self._retries.sync()
            self._costs.sync()
            self._is_synced = True
            self._synced_at = now
            self._tries.flush()
            failpoints.reach("decide.after_sync")
        if self.can_trim:
            self._queue.forget(self._last_seen)
            self._forgotten = self._last_seen
            failpoints.reach("decide.after_forget")

    def close(self) -> None:
        self._log.sync()
        self._log.close()
        self._retries.sync()
        self._retries.close()
        self._costs.sync()
        self._costs.close()
        self._tries.close()
