"""The intake while a job is processed: outcomes, and what nodes say of their workers. All of it is recorded here."""

from __future__ import annotations

import time
from collections.abc import Sequence

import msgspec

from parallelrun_core.figures import counted
from parallelrun_core.store.outcome_stream import MAX_ENTRIES, StreamEntry
from parallelrun_core.wire.outcome import InitFailure, Outcome
from parallelrun_master.leader.job_context import JobContext
from parallelrun_master.leader.node_watch import NodeWatch
from parallelrun_master.ledger.journals import finished
from parallelrun_master.policy.completion import Completion
from parallelrun_master.policy.error_groups import ErrorGroup
from parallelrun_master.policy.fail_fast import FailFast
from parallelrun_master.policy.gathering import Gathering
from parallelrun_master.policy.speculation import Speculation
from parallelrun_master.policy.window import Window
from parallelrun_master.publishing.sizing import Sizing


class Intake:
    """Reads the job's outcome stream, records what it has, and passes on what follows.

    Args:
        window, completion, speculation, nodes, sizing, fail_fast: to be informed.
    """

    def __init__(
        self,
        job: JobContext,
        window: Window,
        completion: Completion,
        speculation: Speculation | None,
        nodes: NodeWatch,
        *,
        sizing: Sizing | None = None,
        fail_fast: FailFast | None = None,
    ) -> None:
        self._job = job
        self._ledger = job.ledger
        self._window = window
        self._completion = completion
        self._speculation = speculation
        self._nodes = nodes
        self._sizing = sizing
        self._fail_fast = fail_fast
        self._gathering = Gathering(job.ledger.progress, time.monotonic())

    def read(self, now: float, *, wait_ms: int) -> list[StreamEntry]:
        """Return what has come in since the last call; waits for something when `wait_ms` isn't 0."""
        entries = self._ledger.read(block_ms=wait_ms or None)
        if wait_ms and 0 < len(entries) < MAX_ENTRIES:
            # What comes in meanwhile shares one read, one sync and one round trip.
            arrived = sum(len(entry.outcomes) for entry in entries)
            is_urgent = self._fail_fast is not None and self._fail_fast.may_give_up
            is_urgent = is_urgent or (self._sizing is not None and self._sizing.is_learning)
            time.sleep(self._gathering.wait_s(arrived, now, is_urgent=is_urgent))
        return entries

    def record(self, entries: list[StreamEntry], now: float) -> None:
        """Record these; what has been recorded for long enough becomes durable, and is trimmed."""
        outcomes = [outcome for entry in entries for outcome in entry.outcomes]
        if outcomes:
            if self._sizing is not None:
                self._sizing.observe(outcomes)
            encoded = [entry.encoded for entry in entries if entry.outcomes]
            self._take(*self._ledger.record(outcomes, encoded if all(encoded) else ()), now)
        for entry in entries:
            if not entry.outcomes:
                self._heed(entry, now)
        self._ledger.sync_and_trim(now, at_once=not entries)

    def give_up(self, outcomes: Sequence[Outcome], now: float) -> None:
        """Record durably that these were lost with their nodes too often."""
        if self._sizing is not None:
            self._sizing.observe(outcomes)
        self._take(*self._ledger.record(list(outcomes)), now)
        self._ledger.sync_and_trim(now, at_once=True)
        self._job.queue.confirm_given_up([outcome.mini_batch for outcome in outcomes])

    def mend(self, now: float) -> None:
        """If entries were refused, take what agents had finished: it was in the journals before it was reported.

        A try that failed may be of a delivery that was lost, and its successor's rows on their way: those mini-batches
        are run again, once it is noticed that nobody has them.
        """
        if not self._ledger.refusals.are_to_be_mended(now):
            return
        job = self._job
        recovered = self._ledger.recover(finished(job.folder, self._ledger.decided, job.queue.generation))
        if recovered:
            self._window.decided(recovered)
            self._completion.recorded(now)
            job.log.warning("refused_but_journaled", mini_batches=recovered)
            job.reports.say(
                f"Recovered {counted(recovered, 'mini-batch')} from journals: what Redis had isn't believed."
            )

    def _take(self, accepted: list[Outcome], new_groups: list[ErrorGroup], now: float) -> None:
        """Pass on what follows from new decisions."""
        self._window.decided(len(accepted))
        self._completion.recorded(now)
        if self._speculation is not None:
            for outcome in accepted:
                self._speculation.observe(outcome.run_s)
        if self._fail_fast is not None:
            self._fail_fast.observe(accepted)
        for group in new_groups:
            self._announce(group)

    def _heed(self, entry: StreamEntry, now: float) -> None:
        """Pass on what a node says of its workers."""
        if entry.preparing:
            self._completion.prepares()
            self._nodes.prepares(entry.preparing, now)
        for phase in entry.phases:
            self._nodes.has_prepared(phase.node)
            if phase.name == "INIT":
                self._completion.got_through_init()
        if entry.whole_failures:
            self._completion.recorded(now)
            if self._fail_fast is not None:
                self._fail_fast.observe(entry.whole_failures)
        if entry.init_failure is not None:
            self._init_failed(entry.init_failure, now)

    def _init_failed(self, failure: InitFailure, now: float) -> None:
        self._nodes.has_prepared(failure.node)
        self._job.log.warning("init_failed", node=failure.node, process=failure.process)
        self._completion.init_failed(failure, self._nodes.slots, now)

    def _announce(self, group: ErrorGroup) -> None:
        self._job.log.info("mini_batch_failed", category=group.category, message=group.message)
        fields = {"category": group.category, "message": group.message, "traceback": group.traceback}
        event = msgspec.json.encode({**fields, "count": group.count})
        self._job.queue.announce("error", event)
