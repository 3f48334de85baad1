"""The main phase of a job: list, publish, record and check, round after round, until all is decided."""

from __future__ import annotations

import socket
import time
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from parallelrun_core.errors import InvalidInput
from parallelrun_core.figures import counted
from parallelrun_core.service import failpoints
from parallelrun_core.storage.objects.trouble import StoreAway
from parallelrun_core.store.connection import CONNECTION_ERRORS
from parallelrun_core.store.nodes import NodeRegistry
from parallelrun_core.store.registry import Registry
from parallelrun_core.wire.failure import JobFailure
from parallelrun_core.wire.states import JobState
from parallelrun_master.leader.compute_watch import ComputeWatch
from parallelrun_master.leader.control_watch import ControlWatch
from parallelrun_master.leader.disk_check import DiskCheck
from parallelrun_master.leader.intake import Intake
from parallelrun_master.leader.job_context import JobContext
from parallelrun_master.leader.node_watch import NodeWatch
from parallelrun_master.leader.watchdog import Watchdog
from parallelrun_master.planning.apart import WatchedThread
from parallelrun_master.planning.changed_inputs import changed_inputs, listing_changes
from parallelrun_master.planning.shuffling import ShuffleFailed
from parallelrun_master.policy.budget import BudgetWatch
from parallelrun_master.policy.completion import Completion, End
from parallelrun_master.policy.fail_fast import FailFast
from parallelrun_master.policy.speculation import Speculation
from parallelrun_master.publishing.publisher import Publisher
from parallelrun_master.publishing.scheduling import InputUnreadable, Scheduler, StoreTrouble
from parallelrun_master.publishing.sizing import Sizing, sizing_of
from parallelrun_master.reports.scheduling_log import SchedulingLog

if TYPE_CHECKING:
    from parallelrun_master.settings import MasterSettings

_SLICE_S = 0.005
_LONG_SLICE_S = 0.02
_COMPARE_S = 2.0
"""How long a job waits at first for what has changed in its inputs: only a long list takes more."""
_GLANCE_S = 0.001


class Processing:
    """Everything that a leader does while its job is `processing`; `Completion` decides how that ends."""

    def __init__(self, job: JobContext, settings: MasterSettings) -> None:
        now = time.monotonic()
        self._job = job
        self._patience_s = settings.leader_seconds
        self._leadership = job.leadership
        self._ledger = job.ledger
        self._scheduling_log = SchedulingLog(job.reports.log, job.spec.data_paths(), socket.gethostname())
        self._scheduler = Scheduler(
            job.folder.path, job.spec, job.queue.term, self._scheduling_log.begin_input, self._shuffled,
            closing=job.closing, rule=job.path_rule, warn=job.warnings.add, patience_s=settings.leader_seconds,
            sizing=partial(sizing_of, job.spec, job.folder.path) if job.spec.size.is_auto else None,
        )  # fmt: skip
        self._leadership.durable_before += self._scheduler.mini_batches
        self._publisher = Publisher(job.folder.path, job.queue, job.ledger.decided, self._scheduler.handover)
        self._nodes = NodeWatch(NodeRegistry(job.redis), job.queue, job.spec, settings)
        self._compute = ComputeWatch(settings.root, job.redis, job.spec, job.reports.say, Registry(job.redis).now)
        self._control = ControlWatch(job.folder, job.record, Registry(job.redis))
        self._waits_for = ""
        self._comparing = WatchedThread(settings.leader_seconds)
        """Compares the inputs with their list, of a job that goes on with an earlier one."""
        self._disk_check = DiskCheck(job.folder.path, settings.leader_seconds)
        self._completion = Completion(job.spec, job.ledger.progress, job.ledger.errors, now)
        self._speculation = Speculation() if job.spec.speculative_execution else None
        self._watchdog = Watchdog(job)
        self._budget = BudgetWatch(job.ledger.progress)
        self._fail_fast = FailFast(job.spec, job.ledger.progress, job.ledger.errors.mask)
        self._intake = Intake(
            job, self._publisher.window, self._completion, self._speculation, self._nodes,
            sizing=self._scheduler.sizing, fail_fast=self._fail_fast,
        )  # fmt: skip

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
            self._publisher.close()
            self._comparing.close()
            self._disk_check.close()

    def _run(self) -> None:
        self._completion.fail(self._changed_inputs())
        self._completion.stood_still(time.monotonic())  # checking all of them may take long
        if self._scheduler.closing is None:
            self._scheduling_log.start()
        elif self._job.reopening is not None or self._job.record.resumed is not None:
            self._compare_listing(time.monotonic() + _COMPARE_S)
        was_away = False
        while not self._leadership.is_resigning:
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
                self._job.wait_for_redis(error)
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
        if self._job.state() is JobState.QUEUED:
            self._job.start()
        self._publisher.rewind()
        self._nodes.start_over()
        if self._speculation is not None:
            self._speculation.start_over()
        self._completion.stood_still(time.monotonic())  # nobody could make progress
        return self._job.state() is JobState.PROCESSING and not self._job.is_canceled()

    def _round(self) -> bool:
        """List a little, publish what fits, record what came in; returns whether the job has left this state."""
        self._nodes.choose()
        is_listing = self._schedule()
        has_published = self._publisher.step(self._scheduler.mini_batches)
        waits = not is_listing and not has_published
        now = time.monotonic()
        entries = self._intake.read(now, wait_ms=self._leadership.ms_to_tick(now) if waits else 0)
        now = time.monotonic()
        self._intake.record(entries, now)
        if self._budget.closes():
            self._close()
        if entries and self._fail_fast.is_open:
            self._look_for_one_cause()
        if is_listing:
            self._completion.moved(now)
        if has_published:
            self._completion.published(self._publisher.window.next_id, now)
        if self._leadership.tick(now):
            self._check(now)
        is_woken = any(not (entry.outcomes or entry.phases or entry.spent) for entry in entries)
        return is_woken and self._job.state() is not JobState.PROCESSING

    def _look_for_one_cause(self) -> None:
        """Give the job up if all fails alike, or say so if it is to go on."""
        workers = max(self._nodes.started, self._nodes.own_workers)
        if probes := self._fail_fast.probes(self._scheduler.mini_batches, workers):
            self._publisher.expedite(probes)
        self._completion.fail(self._fail_fast.verdict(workers))
        if remark := self._fail_fast.remark(workers):
            self._job.remarks.append(remark)
            self._job.reports.say(f"{remark}.")

    def _schedule(self) -> bool:
        """List for a slice of time; returns whether there is more."""
        scheduler = self._scheduler
        if scheduler.sizing is not None and scheduler.closing is None:
            self._choose_size(scheduler.sizing)
        if scheduler.closing is not None or scheduler.must_wait:
            has_more = False
        else:
            # Nobody waits for what comes next while plenty is there, and each slice costs a sync and two round trips.
            has_more = scheduler.step(_LONG_SLICE_S if self._publisher.window.has_plenty else _SLICE_S)
            now = time.monotonic()
            self._scheduling_log.scheduled(
                scheduler.mini_batches, scheduler.items, now, finished=not has_more, tables=scheduler.tables
            )
            if scheduler.sizing is not None:
                scheduler.sizing.show(self._ledger.progress)
            if not has_more:
                self._job.reports.overview.say(
                    f"Scheduling finished: {counted(scheduler.mini_batches, 'mini-batch')} with "
                    f"{scheduler.tables.words(scheduler.items)} in {now - self._job.began:.2f} s."
                )
        all_of_them = scheduler.closing is not None
        self._ledger.items_listed = scheduler.items
        self._completion.scheduled(scheduler.mini_batches, scheduler.items, all_of_them=all_of_them)
        return has_more and not scheduler.must_wait

    def _choose_size(self, sizing: Sizing) -> None:
        """Let a job that chooses the size of its mini-batches do so by what is known now, and say what is new."""
        progress = self._ledger.progress
        sizing.refresh(progress.decided, self._nodes.own_workers)
        sizing.show(progress)
        if (choice := sizing.news()) is not None:
            self._job.reports.say(f"A mini-batch now has {counted(choice.items, 'item')}: {choice.why}.")
            self._job.queue.announce("size", msgspec.json.encode({"items": choice.items, "why": choice.why}))

    def _shuffled(self, done: int, total: int) -> None:
        progress = self._ledger.progress
        progress.bytes_shuffled, progress.bytes_to_shuffle = done, total
        self._scheduling_log.shuffled(done, total, time.monotonic())

    def _check(self, now: float) -> None:
        """Check nodes, progress, stragglers and stalls, a few times a second."""
        progress = self._ledger.progress
        lost = self._nodes.check()
        if self._nodes.given_up:
            self._intake.give_up(self._nodes.given_up, now)
        self._intake.mend(now)
        outstanding, leased = self._job.queue.counts()
        self._publisher.window.refresh(outstanding, leased)
        if self._watchdog.check(self._publisher.window.next_id, outstanding, leased, now):
            self._completion.recorded(now)
        self._compute.refresh(progress, self._nodes.alive, now)
        self._completion.fail(self._compute.failure)
        if self._budget.is_closed:
            self._finish_what_runs(leased, now)
        self._wait(now)
        if self._comparing.is_busy:
            self._compare_listing(now + _GLANCE_S)
        for remark in (self._nodes.cut, self._disk_check.news(self._scheduler.mini_batches, self._nodes.disks)):
            if remark and remark not in self._job.remarks:
                self._job.remarks.append(remark)
                self._job.reports.say(f"{remark}.")
        # With look-ahead, agents hold more than their workers run.
        running = min(leased, max(self._nodes.workers, sum(work.in_flight for work in self._nodes.work)))
        self._completion.refresh(now, nodes=self._nodes.alive, running=running, lost=lost, workers=self._nodes.started)
        progress.preparing = self._nodes.preparing(now)
        progress.workers = self._nodes.started
        self._nodes.show_work(progress)
        progress.published = self._publisher.window.next_id
        if self._speculation is not None and progress.listing_done and progress.published == progress.scheduled:
            self._give_out_again(self._speculation, now)
        self._job.show_progress()
        self._job.reports.refresh(progress, self._ledger.errors, now - self._job.began, now, self._job.warnings.totals)

    def _close(self) -> None:
        """The budget is used up: let nodes begin nothing more."""
        self._job.queue.close()
        self._job.reports.say(
            f"{self._ledger.progress.cost_text()}: nothing more is handed out, what runs is finished."
        )

    def _finish_what_runs(self, leased: int, now: float) -> None:
        """Wait until nothing runs any more; no timeout of the job's runs meanwhile."""
        self._job.queue.close()  # again: Redis may have forgotten it
        self._completion.stood_still(now)
        at_work = bool(leased) or any(self._job.queue.sessions())
        if not self._completion.is_decided:
            self._completion.fail(self._budget.failure(at_work=at_work))

    def _wait(self, now: float) -> None:
        """While no node has a place for the job, for a reason that is not its own, let no timeout run, and say so."""
        is_paused = self._control.is_paused(now)
        waits_for = "somebody has paused it" if is_paused else " and ".join(self._nodes.obstacles)
        if self._compute.is_awaited and not self._nodes.has_place:
            waits_for = waits_for or f"nodes of compute {self._job.spec.compute!r} are on their way"
        if waits_for:
            self._completion.stood_still(now)
        if waits_for != self._waits_for:
            on_nodes = " on all of its nodes" if self._nodes.obstacles and not is_paused else ""
            text = f"The job waits, and no timeout runs: {waits_for}{on_nodes}."
            self._job.reports.say(text if waits_for else "The job waits no more: a node has a place for it.")
            self._waits_for = waits_for

    def _give_out_again(self, speculation: Speculation, now: float) -> None:
        progress, queue = self._ledger.progress, self._job.queue
        stragglers = speculation.stragglers(queue.leases(), now, decided=progress.decided, total=progress.scheduled)
        if stragglers:
            count = queue.speculate(stragglers)
            numbers = [number for number, _ in stragglers]
            self._job.log.info("stragglers_given_out_again", mini_batches=numbers, made=count)

    def _compare_listing(self, until: float) -> None:
        """Say what has changed in the inputs since they were listed, if that is known until then (monotonic)."""
        resumed = self._job.record.resumed
        listed_at = resumed.listed if resumed is not None else 0.0
        find = partial(listing_changes, self._job.folder.path, self._job.path_rule, listed_at)
        changes = None
        while changes is None and time.monotonic() < until:
            changes = self._comparing.ask(find)
        if changes:
            self._job.remarks.append(changes)
            self._job.reports.say(f"{changes}.")

    def _changed_inputs(self) -> JobFailure | None:
        """A resumed job keeps its plan, so the inputs that it has yet to process must be as they were planned."""
        reopening = self._job.reopening
        if reopening is None or reopening.accept_changed_inputs:
            return None
        changes = self._changes()
        if not changes:
            return None
        return JobFailure(
            code="INPUTS_CHANGED",
            summary="The inputs have changed since they were scheduled: " + "; ".join(changes),
            hint="put them back, or continue anyway with accept_changed_inputs",
        )

    def _changes(self) -> list[str]:
        """Return what has changed; nothing if the job's state does so first, or the leader has to resign."""
        apart = WatchedThread(self._patience_s)
        find = partial(changed_inputs, self._job.folder.path, self._ledger.decided)
        try:
            while (changes := apart.ask(find)) is None:
                try:
                    if self._leadership.tick(time.monotonic()) and self._job.state() is not JobState.PROCESSING:
                        break
                except CONNECTION_ERRORS as error:
                    self._job.wait_for_redis(error)
                if self._leadership.is_resigning:
                    break
        except StoreAway as error:
            raise StoreTrouble(str(error)) from error
        finally:
            apart.close()
        return changes or []

    def _end(self, end: End) -> None:
        if self._job.is_canceled():
            return  # Redis has forgotten it
        if self._completion.is_decided:
            progress = self._ledger.progress
            progress.published, progress.running, progress.preparing = progress.scheduled, 0, 0
            self._ledger.sync_and_trim(time.monotonic(), at_once=True)
            self._job.show_progress()
            failpoints.reach("finish.all_decided")
        self._job.move(end.state, end.failure)
