"""The first phase of a job: list, publish, enter what comes in, and judge, round after round, until all is decided."""

from __future__ import annotations

import time

import msgspec

from parallelrun_core import failpoints
from parallelrun_core.disktrouble import is_disk_trouble
from parallelrun_core.errors import InvalidInput
from parallelrun_core.outcome import Outcome
from parallelrun_core.states import JobState
from parallelrun_core.store.connection import CONNECTION_ERRORS
from parallelrun_core.store.leader_queue import News
from parallelrun_core.store.registry import JobFailure
from parallelrun_master.inputs import changed_inputs
from parallelrun_master.nodes import NodeWatch
from parallelrun_master.scheduling import Publisher, Scheduler
from parallelrun_master.speculation import Speculation
from parallelrun_master.term import IDLE_MS, Term
from parallelrun_master.verdict import InitWatch, Signature, StallWatch, nothing_returned, over_threshold

_SLICE_S = 0.005
_GATHER_S = 0.004


class Processing:
    """Everything that a leader does while its job is `processing`."""

    def __init__(self, term: Term) -> None:
        self._term = term
        self._ledger = term.ledger
        self._spec = term.spec
        self._scheduler = Scheduler(term.folder.path, term.spec, term.queue.term)
        self._publisher = Publisher(term.folder.path, term.queue, term.ledger.decided)
        self._nodes = NodeWatch(term.registry, term.queue, term.spec, term.settings)
        self._inits = InitWatch(term.spec)
        self._stall = StallWatch(term.spec, time.monotonic())
        self._speculation = Speculation() if term.spec.speculative_execution else None

    def run(self) -> None:
        """Until the job has left this state, or the leader is to resign.

        Raises:
            Fenced: another turn has begun.
            OSError: the disk is full.
        """
        failure = self._changed_inputs()
        while not self._term.resigning:
            try:
                if failure is not None:
                    self._term.move(JobState.FAILED, failure)
                    return
                news, failure = self._round()
                if failure is None and self._is_over(news):
                    return
            except CONNECTION_ERRORS as error:
                self._term.wait_for_redis(error)
                self._publisher.rewind()
                self._stall.moved(time.monotonic())  # nobody could make progress
            except InvalidInput as error:
                failure = JobFailure(code="INVALID_INPUT", summary=f"The input is not valid: {error}")
            except OSError as error:
                if is_disk_trouble(error):
                    raise
                failure = JobFailure(code="INPUT_UNREADABLE", summary=f"The input can't be read: {error}")

    def _round(self) -> tuple[list[News], JobFailure | None]:
        """List a little, publish what there is room for, enter what came in; the job's failure if it must fail."""
        busy = self._schedule()
        published = self._publisher.step(self._scheduler.mini_batches)
        news = self._ledger.read(block_ms=None if busy or published else IDLE_MS)
        if news and not busy and not published:
            time.sleep(_GATHER_S)  # whoever comes in this while shares one entry, one sync, one round trip
        now = time.monotonic()
        failure = self._enter(news, now)
        self._ledger.settle(now, at_once=not news)
        if busy or published:
            self._stall.moved(now)
        if published:
            self._stall.first_mini_batch()
        if self._term.tick(now):
            failure = self._look_around(now) or failure
        return news, failure

    def _is_over(self, news: list[News]) -> bool:
        if self._scheduler.closing is not None and self._ledger.decided.count >= self._scheduler.mini_batches:
            self._all_decided()
            return True
        woken = any(not entry.outcomes for entry in news)
        return woken and self._term.state() is not JobState.PROCESSING

    def _schedule(self) -> bool:
        scheduler = self._scheduler
        if scheduler.closing is not None:
            return False
        more = scheduler.step(_SLICE_S)
        if not more:
            self._term.overview.say(
                f"Scheduling finished: {scheduler.mini_batches:,} mini-batches with {scheduler.items:,} items "
                f"in {time.monotonic() - self._term.began:.2f} s."
            )
        return more

    def _enter(self, news: list[News], now: float) -> JobFailure | None:
        outcomes = [outcome for entry in news for outcome in entry.outcomes]
        failure = self._enter_outcomes(outcomes, now) if outcomes else None
        for entry in news:
            if entry.init_failure is not None:
                self._term.log.warning("init_failed", node=entry.init_failure.node, process=entry.init_failure.process)
                failure = failure or self._inits.failed(entry.init_failure, self._nodes.slots)
        return failure

    def _enter_outcomes(self, outcomes: list[Outcome], now: float) -> JobFailure | None:
        self._inits.ran()
        self._stall.moved(now)
        accepted, signatures = self._ledger.enter(outcomes)
        self._publisher.decided(len(accepted))
        if self._speculation is not None:
            for outcome in accepted:
                self._speculation.observe(outcome.run_s)
        for signature in signatures:
            self._announce(signature)
        if any(outcome.failed_items for outcome in accepted):
            return over_threshold(self._spec, self._ledger.progress, self._ledger.errors)
        return None

    def _announce(self, signature: Signature) -> None:
        self._term.log.info("mini_batch_failed", category=signature.category, message=signature.message)
        fields = {"category": signature.category, "message": signature.message, "traceback": signature.traceback}
        event = msgspec.json.encode({**fields, "count": signature.count})
        self._term.queue.show({"errors": "1"}, event=("error", event))

    def _look_around(self, now: float) -> JobFailure | None:
        """What is done a few times a second: nodes, progress, stragglers, stalls."""
        progress = self._ledger.progress
        progress.lost += self._nodes.look()
        self._count_scheduled()
        progress.running = self._term.queue.leased()
        if self._speculation is not None and progress.listing_done and progress.published == progress.scheduled:
            self._give_out_again(self._speculation, now)
        self._term.show_progress()
        self._term.overview.progress(progress, now - self._term.began, now)
        failure = self._stall.stalled(now, nodes=self._nodes.alive, running=progress.running)
        return failure or over_threshold(self._spec, progress, self._ledger.errors)

    def _count_scheduled(self) -> None:
        progress = self._ledger.progress
        progress.scheduled, progress.items_scheduled = self._scheduler.mini_batches, self._scheduler.items
        progress.listing_done = self._scheduler.closing is not None
        progress.published = self._publisher.next_id

    def _give_out_again(self, speculation: Speculation, now: float) -> None:
        progress, queue = self._ledger.progress, self._term.queue
        stragglers = speculation.stragglers(queue.leases(), now, decided=progress.decided, total=progress.scheduled)
        if stragglers:
            made = queue.speculate(stragglers)
            numbers = [number for number, _ in stragglers]
            self._term.log.info("stragglers_given_out_again", mini_batches=numbers, made=made)

    def _changed_inputs(self) -> JobFailure | None:
        """A job that goes on keeps its plan, so what it has yet to do must still be what was planned."""
        reopening = self._term.reopening
        if reopening is None or reopening.accept_changed_inputs:
            return None
        changes = changed_inputs(self._term.folder.path, self._ledger.decided)
        if not changes:
            return None
        return JobFailure(
            code="INPUTS_CHANGED",
            summary="The inputs are not what they were when they were scheduled: " + "; ".join(changes),
            hint="put them back, or go on without them by accept_changed_inputs",
        )

    def _all_decided(self) -> None:
        progress = self._ledger.progress
        self._count_scheduled()
        progress.published, progress.running = progress.scheduled, 0
        self._ledger.settle(time.monotonic(), at_once=True)
        self._term.show_progress()
        failure = over_threshold(self._spec, progress, self._ledger.errors)
        if not progress.scheduled:
            failure = JobFailure(
                code="EMPTY_INPUT", summary=f"There is no file in {', '.join(self._spec.data_paths())}."
            )
        elif failure is None and self._spec.writes_rows and progress.rows == 0:
            failure = nothing_returned(self._ledger.errors)
        failpoints.reach("finish.all_decided")
        self._term.move(JobState.FAILED if failure else JobState.FINALIZING, failure)
