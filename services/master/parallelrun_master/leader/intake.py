"""The intake while a job is processed: outcomes, and what nodes say of their workers. All of it is recorded here."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

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


@dataclass(eq=False)
class Intake:
    """Reads the job's outcome stream, records what it has, and passes on what follows.

    Args:
        window, completion, speculation, nodes, sizing, fail_fast: to be informed.
    """

    job: JobContext
    window: Window
    completion: Completion
    speculation: Speculation | None
    nodes: NodeWatch
    sizing: Sizing | None = None
    fail_fast: FailFast | None = None

    def __post_init__(self) -> None:
        self._ledger = self.job.ledger
        self._gathering = Gathering(self._ledger.progress, time.monotonic())

    def read(self, now: float, *, wait_ms: int) -> list[StreamEntry]:
        """Return what has come in since the last call; waits for something when `wait_ms` isn't 0."""
        entries = self._ledger.read(block_ms=wait_ms or None)
        if wait_ms and 0 < len(entries) < MAX_ENTRIES:
            # What comes in meanwhile shares one read, one sync and one round trip.
            arrived = sum(len(entry.outcomes) for entry in entries)
            is_urgent = self.fail_fast is not None and self.fail_fast.may_give_up
            is_urgent = is_urgent or (self.sizing is not None and self.sizing.is_learning)
            time.sleep(self._gathering.wait_s(arrived, now, is_urgent=is_urgent))
        return entries

    def record(self, entries: list[StreamEntry], now: float) -> None:
        """Record these; what has been recorded for long enough becomes durable, and is trimmed."""
        outcomes = [outcome for entry in entries for outcome in entry.outcomes]
        new_groups: list[ErrorGroup] = []
        if outcomes:
            if self.sizing is not None:
                self.sizing.observe(outcomes)
            encoded = [entry.encoded for entry in entries if entry.outcomes]
            accepted, new_groups = self._ledger.record(outcomes, encoded if all(encoded) else ())
            self._take(accepted, now)
        for entry in entries:
            if not entry.outcomes:
                self._heed(entry, now)
        self._announce(new_groups)  # last: Redis may be away, and none of these is read again
        self._ledger.sync_and_trim(now, at_once=not entries)

    def give_up(self, outcomes: Sequence[Outcome], now: float) -> None:
        """Record durably that these were lost with their nodes too often."""
        if self.sizing is not None:
            self.sizing.observe(outcomes)
        accepted, new_groups = self._ledger.record(list(outcomes))
        self._take(accepted, now)
        self._ledger.sync_and_trim(now, at_once=True)
        self.job.queue.confirm_given_up([outcome.mini_batch for outcome in outcomes])
        self._announce(new_groups)

    def mend(self, now: float) -> None:
        """If entries were refused, take what agents had finished: it was in the journals before it was reported.

        A try that failed may be of a delivery that was lost, and its successor's rows on their way: those mini-batches
        are run again, once it is noticed that nobody has them.
        """
        if not self._ledger.refusals.are_to_be_mended(now):
            return
        job = self.job
        recovered = self._ledger.recover(finished(job.folder, self._ledger.decided, job.queue.generation))
        if recovered:
            self.window.decided(recovered)
            self.completion.recorded(now)
            job.log.warning("refused_but_journaled", mini_batches=recovered)
            job.reports.say(
                f"Recovered {counted(recovered, 'mini-batch')} from journals: what Redis had isn't believed."
            )

    def _take(self, accepted: list[Outcome], now: float) -> None:
        """Pass on what follows from new decisions."""
        self.window.decided(len(accepted))
        self.completion.recorded(now)
        if self.speculation is not None:
            for outcome in accepted:
                self.speculation.observe(outcome.run_s)
        if self.fail_fast is not None:
            self.fail_fast.observe(accepted)

    def _heed(self, entry: StreamEntry, now: float) -> None:
        """Pass on what a node says of its workers."""
        if entry.preparing:
            self.completion.prepares()
            self.nodes.prepares(entry.preparing, now)
        for phase in entry.phases:
            self.nodes.has_prepared(phase.node)
            if phase.name == "INIT":
                self.completion.got_through_init()
        if entry.whole_failures:
            self.completion.recorded(now)
            if self.fail_fast is not None:
                self.fail_fast.observe(entry.whole_failures)
        if entry.init_failure is not None:
            self._init_failed(entry.init_failure, now)

    def _init_failed(self, failure: InitFailure, now: float) -> None:
        self.nodes.has_prepared(failure.node)
        self.job.log.warning("init_failed", node=failure.node, process=failure.process)
        self.completion.init_failed(failure, self.nodes.slots, now)

    def _announce(self, groups: list[ErrorGroup]) -> None:
        for group in groups:
            self.job.log.info("mini_batch_failed", category=group.category, message=group.message)
            fields = {"category": group.category, "message": group.message, "traceback": group.traceback}
            event = msgspec.json.encode({**fields, "count": group.count})
            self.job.queue.announce("error", event)
