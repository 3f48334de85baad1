"""The main phase of a job: list, publish, record and check, round after round, until all is decided."""

from __future__ import annotations

import socket
import time

import msgspec

from parallelrun_core.errors import InvalidInput
from parallelrun_core.failure import JobFailure
from parallelrun_core.service import failpoints
from parallelrun_core.states import JobState
from parallelrun_core.store.connection import CONNECTION_ERRORS
from parallelrun_core.store.nodes import Nodes
from parallelrun_core.store.outcome_stream import MAX_ENTRIES, StreamEntry
from parallelrun_master.node_watch import NodeWatch
from parallelrun_master.planning.changed_inputs import changed_inputs
from parallelrun_master.planning.shuffling import ShuffleFailed
from parallelrun_master.policy.completion import Completion, End
from parallelrun_master.policy.error_groups import ErrorGroup
from parallelrun_master.policy.gathering import Gathering
from parallelrun_master.policy.speculation import Speculation
from parallelrun_master.reports.scheduling_log import SchedulingLog
from parallelrun_master.scheduling import InputUnreadable, Publisher, Scheduler
from parallelrun_master.term import Term

_SLICE_S = 0.005
_LONG_SLICE_S = 0.02


class Processing:
    """Everything that a leader does while its job is `processing`; `Completion` decides how that ends."""

    def __init__(self, term: Term) -> None:
        self._term = term
        self._ledger = term.ledger
        self._scheduling_log = SchedulingLog(term.reports.log, term.spec.data_paths(), socket.gethostname())
        self._scheduler = Scheduler(
            term.folder.path, term.spec, term.queue.term, self._scheduling_log.enter, self._shuffled
        )
        term.mark += self._scheduler.mini_batches
        self._publisher = Publisher(term.folder.path, term.queue, term.ledger.decided, self._scheduler.handover)
        self._nodes = NodeWatch(Nodes(term.redis), term.queue, term.spec, term.settings)
        self._waits_for_room = False
        self._completion = Completion(term.spec, term.ledger.progress, term.ledger.errors, time.monotonic())
        self._gathering = Gathering(term.ledger.progress, time.monotonic())
        self._speculation = Speculation() if term.spec.speculative_execution else None

    def run(self) -> None:
        """Go on until the job has left this state, or the leader has to resign.

        Raises:
            Fenced: another term has begun.
            OSError: the disk is full, or something is wrong here.
        """
        try:
            self._run()
        finally:
            self._scheduler.stop()

    def _run(self) -> None:
        self._completion.fail(self._changed_inputs())
        self._completion.moved(time.monotonic())  # checking all of them may take long
        if self._scheduler.closing is None:
            self._scheduling_log.start()
        was_away = False
        while not self._term.resigning:
            try:
                if was_away and not self._go_on():
                    return
                was_away = False
                if (end := self._completion.end()) is not None:
                    self._end(end)
                    return
                if self._round():
                    return
            except CONNECTION_ERRORS as error:
                self._term.wait_for_redis(error)
                was_away = True
            except InvalidInput as error:
                self._completion.fail(JobFailure(code="INVALID_INPUT", summary=f"The input is not valid: {error}"))
            except ShuffleFailed as error:
                hint = "the job can be resumed when that is fixed"
                summary = f"The rows can't be grouped: {error}."
                self._completion.fail(JobFailure(code="SHUFFLE_FAILED", summary=summary, hint=hint))
            except InputUnreadable as error:
                summary = f"The input can't be read: {error}"
                self._completion.fail(JobFailure(code="INPUT_UNREADABLE", summary=summary))

    def _go_on(self) -> bool:
        """Redis is back: find out what it has forgotten; returns whether the job is still to be processed.

        Redis may have been set back to before the job began. And the entry that announced another state may have been
        read in the round that ended when Redis went away.
        """
        if self._term.state() is JobState.QUEUED:
            self._term.start()
        self._publisher.rewind()
        self._nodes.start_over()
        if self._speculation is not None:
            self._speculation.start_over()
        self._completion.moved(time.monotonic())  # nobody could make progress
        return self._term.state() is JobState.PROCESSING

    def _round(self) -> bool:
        """List a little, publish what fits, enter what came in; returns whether the job has left this state."""
        busy = self._schedule()
        published = self._publisher.step(self._scheduler.mini_batches)
        now = time.monotonic()
        waits = not busy and not published
        entries = self._ledger.read(block_ms=self._term.ms_to_tick(now) if waits else None)
        if waits and 0 < len(entries) < MAX_ENTRIES:
            # What comes in meanwhile shares one read, one sync and one round trip.
            time.sleep(self._gathering.wait_s(sum(len(entry.outcomes) for entry in entries), now))
        now = time.monotonic()
        self._enter(entries, now)
        self._ledger.settle(now, at_once=not entries)
        if busy:
            self._completion.moved(now)
        if published:
            self._completion.published(self._publisher.window.next_id, now)
        if self._term.tick(now):
            self._look_around(now)
        woken = any(not entry.outcomes for entry in entries)
        return woken and self._term.state() is not JobState.PROCESSING

    def _schedule(self) -> bool:
        scheduler = self._scheduler
        if scheduler.closing is not None:
            more = False
        else:
            # Nobody waits for what comes next while plenty is there, and each slice costs a sync and two round trips.
            more = scheduler.step(_LONG_SLICE_S if self._publisher.window.has_plenty else _SLICE_S)
            self._scheduling_log.look(scheduler.mini_batches, scheduler.items, time.monotonic(), finished=not more)
            if not more:
                self._term.reports.overview.say(
                    f"Scheduling finished: {scheduler.mini_batches:,} mini-batches with {scheduler.items:,} items "
                    f"in {time.monotonic() - self._term.began:.2f} s."
                )
        all_of_them = scheduler.closing is not None
        self._completion.scheduled(scheduler.mini_batches, scheduler.items, all_of_them=all_of_them)
        return more

    def _shuffled(self, done: int, total: int) -> None:
        progress = self._ledger.progress
        progress.bytes_shuffled, progress.bytes_to_shuffle = done, total
        self._scheduling_log.shuffled(done, total, time.monotonic())

    def _enter(self, entries: list[StreamEntry], now: float) -> None:
        outcomes = [outcome for entry in entries for outcome in entry.outcomes]
        if outcomes:
            encoded = [entry.encoded for entry in entries if entry.outcomes]
            accepted, new_groups = self._ledger.enter(outcomes, encoded if all(encoded) else ())
            self._publisher.window.decided(len(accepted))
            self._completion.entered(now)
            if self._speculation is not None:
                for outcome in accepted:
                    self._speculation.observe(outcome.run_s)
            for group in new_groups:
                self._announce(group)
        for entry in entries:
            if entry.preparing:
                self._completion.moved(now)
                self._nodes.prepares(entry.preparing, now)
            for phase in entry.phases:
                self._nodes.has_prepared(phase.node)
                if phase.name == "INIT":
                    self._completion.got_through_init()
            if entry.init_failure is not None:
                self._nodes.has_prepared(entry.init_failure.node)
                self._term.log.warning("init_failed", node=entry.init_failure.node, process=entry.init_failure.process)
                self._completion.init_failed(entry.init_failure, self._nodes.slots, now)

    def _announce(self, group: ErrorGroup) -> None:
        self._term.log.info("mini_batch_failed", category=group.category, message=group.message)
        fields = {"category": group.category, "message": group.message, "traceback": group.traceback}
        event = msgspec.json.encode({**fields, "count": group.count})
        self._term.queue.announce("error", event)

    def _look_around(self, now: float) -> None:
        """What is done a few times a second: check nodes, progress, stragglers and stalls."""
        progress = self._ledger.progress
        lost, (outstanding, leased) = self._nodes.look(), self._term.queue.counts()
        self._publisher.window.looked(outstanding, leased)
        if self._nodes.are_full != self._waits_for_room:
            self._waits_for_room = self._nodes.are_full
            which = "are full; the job waits" if self._waits_for_room else "are not full any more"
            self._term.reports.say(f"The disks of all nodes {which}.")
        if self._nodes.are_taken or self._nodes.are_full:
            self._completion.moved(now)  # it waits for slots of other jobs, or for room on the disks
        # With look-ahead, agents hold more than their workers run.
        self._completion.looked(now, nodes=self._nodes.alive, running=min(leased, self._nodes.workers), lost=lost)
        progress.preparing = self._nodes.preparing(now)
        progress.published = self._publisher.window.next_id
        if self._speculation is not None and progress.listing_done and progress.published == progress.scheduled:
            self._give_out_again(self._speculation, now)
        self._term.show_progress()
        self._term.reports.look(progress, self._ledger.errors, now - self._term.began, now)

    def _give_out_again(self, speculation: Speculation, now: float) -> None:
        progress, queue = self._ledger.progress, self._term.queue
        stragglers = speculation.stragglers(queue.leases(), now, decided=progress.decided, total=progress.scheduled)
        if stragglers:
            made = queue.speculate(stragglers)
            numbers = [number for number, _ in stragglers]
            self._term.log.info("stragglers_given_out_again", mini_batches=numbers, made=made)

    def _changed_inputs(self) -> JobFailure | None:
        """A resumed job keeps its plan, so the inputs that it has yet to process must be as they were planned."""
        reopening = self._term.reopening
        if reopening is None or reopening.accept_changed_inputs:
            return None
        changes = changed_inputs(self._term.folder.path, self._ledger.decided)
        if not changes:
            return None
        return JobFailure(
            code="INPUTS_CHANGED",
            summary="The inputs have changed since they were scheduled: " + "; ".join(changes),
            hint="put them back, or continue anyway with accept_changed_inputs",
        )

    def _end(self, end: End) -> None:
        if self._completion.is_decided:
            progress = self._ledger.progress
            progress.published, progress.running, progress.preparing = progress.scheduled, 0, 0
            self._ledger.settle(time.monotonic(), at_once=True)
            self._term.show_progress()
            failpoints.reach("finish.all_decided")
        self._term.move(end.state, end.failure)
