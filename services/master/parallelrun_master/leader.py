"""The master role of one job: one thread, one loop, until the job has ended.

Each round lists a little, publishes what there is room for, enters what agents report, and a few times a second
looks at nodes, thresholds and the clock. All state can be had again from the job folder and Redis, so a leader may die
at any point: the next one, with a higher term, begins with `_take_over`.
"""

from __future__ import annotations

import secrets
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from parallelrun_core import failpoints
from parallelrun_core.decisions import NAME as DECISIONS
from parallelrun_core.errors import Conflict, Fenced, NotFound
from parallelrun_core.jobfolder import JobFolder, JobResult
from parallelrun_core.manifest import NAME as MANIFEST
from parallelrun_core.manifest import read_closing
from parallelrun_core.states import JobState
from parallelrun_core.store.coarse import ask_for_concatenation, concatenation_failed
from parallelrun_core.store.connection import CONNECTION_ERRORS, server_run_id
from parallelrun_core.store.leader_queue import Concatenated, LeaderQueue, News
from parallelrun_core.store.registry import JobFailure, Registry
from parallelrun_core.telemetry import logger
from parallelrun_core.termlog import terms
from parallelrun_master.inputs import changed_inputs
from parallelrun_master.ledger import Ledger
from parallelrun_master.nodes import NodeWatch
from parallelrun_master.reports import README, Overview, write_job_result
from parallelrun_master.scheduling import Publisher, Scheduler
from parallelrun_master.speculation import Speculation
from parallelrun_master.verdict import InitWatch, Signature, StallWatch, nothing_returned, over_threshold, with_cause

if TYPE_CHECKING:
    from redis import Redis

    from parallelrun_master.settings import MasterSettings

_SLICE_S = 0.005
_TICK_S = 0.2
_IDLE_MS = 100
_GATHER_S = 0.004
_AWAY_S = 60.0
_LEAVE_S = 45.0
_CONCATENATE_AGAIN_S = 15.0
_FIRST_PAUSE_S = 0.25
_MAX_CRASHES = 3


class Leader:
    """Leads one job. `run()` returns when the job has ended or another process leads it."""

    def __init__(self, redis: Redis, job_id: str, settings: MasterSettings) -> None:
        self._redis = redis
        self._settings = settings
        self._token = secrets.token_hex(16)
        self._registry = Registry(redis)
        self._queue = LeaderQueue(redis, job_id)
        self._folder = JobFolder(settings.root, job_id)
        self._record = self._folder.record()
        self._spec = self._record.job_spec()
        self._job_id = job_id
        self._resigning = False
        self._overview = Overview(self._folder.logs)
        self._log = logger(job_id=job_id)

    def resign(self) -> None:
        """Stop leading at the next round, so that another master can go on at once. Safe in a signal handler."""
        self._resigning = True

    def run(self) -> None:
        """Lead until the job has ended, another leads it, or `resign()` was called."""
        folder_term = max([0, *terms(self._folder.path, DECISIONS), *terms(self._folder.path, MANIFEST)])
        term = self._queue.acquire(self._token, ttl_ms=self._settings.leader_ms, folder_term=folder_term)
        if not term:
            self._log.info("already_led")
            return
        self._log = self._log.bind(term=term)
        self._log.info("leading")
        failpoints.reach("lead.acquired")
        try:
            self._take_over(term)
            self._lead()
            self._queue.resign(self._token)
        except Fenced as error:
            self._log.warning("fenced", reason=str(error))
        except CONNECTION_ERRORS:
            raise  # the next leader goes on
        except Exception as error:
            self._crashed(error)
            raise

    def _crashed(self, error: Exception) -> None:
        """A fault of ours. Another leader may get through; a job that crashes every one must not do so for ever."""
        self._log.exception("leader_crashed")
        if self._queue.count_crash() >= _MAX_CRASHES:
            summary = f"The master failed {_MAX_CRASHES} times: {type(error).__name__}: {error}"
            with suppress(Conflict, NotFound):
                self._registry.move(self._job_id, JobState.FAILED, JobFailure(code="MASTER_ERROR", summary=summary))
        self._queue.resign(self._token)

    # One round after another

    def _take_over(self, term: int) -> None:
        self._began = time.monotonic()
        self._tick_at = 0.0
        self._run_id = server_run_id(self._redis)
        self._ledger = Ledger(self._folder.path, self._queue, term)
        self._reopening = self._folder.reopening()
        if self._reopening is not None:
            self._queue.generation = self._reopening.generation
            if self._reopening.retry_failed:
                self._ledger.reopen(self._reopening.generation, self._reopening.mini_batches)
        earlier = self._registry.status(self._job_id).progress
        progress = self._ledger.progress
        progress.retried, progress.lost = earlier.retried, earlier.lost
        if (closing := read_closing(self._folder.path)) is not None:
            progress.scheduled, progress.items_scheduled = closing.mini_batches, closing.items
            progress.published, progress.listing_done = earlier.published, True
        state = self._registry.state(self._job_id)
        if state is JobState.QUEUED:
            (self._folder.logs / "readme.txt").write_text(README)
            self._registry.move(self._job_id, JobState.PROCESSING)
            self._queue.show({"started": repr(self._registry.now())})
        self._shown = b""
        self._overview.say(f"Term {term} begins.")

    def _lead(self) -> None:
        result = self._folder.result()
        while result is None:
            state = self._registry.state(self._job_id)
            if state is JobState.PROCESSING:
                self._process()
                if self._resigning:
                    return
            elif state is JobState.FINALIZING:
                result = self._finalize()
                if self._resigning:
                    return
            elif state is None:
                raise Fenced("Redis has forgotten the job")
            else:
                result = self._conclude(state)
        self._retire(result)

    def _process(self) -> None:
        """Until everything is decided, or the job has been ended."""
        scheduler = Scheduler(self._folder.path, self._spec, self._queue.term)
        if (failure := self._changed_inputs()) is not None:
            self._move(JobState.FAILED, failure)
            return
        publisher = Publisher(self._folder.path, self._queue, self._ledger.decided)
        nodes = NodeWatch(self._registry, self._queue, self._spec, self._settings)
        inits = InitWatch(self._spec)
        stall = StallWatch(self._spec, time.monotonic())
        self._speculation = Speculation() if self._spec.speculative_execution else None
        durable = 0
        while not self._resigning:
            try:
                busy = self._schedule(scheduler)
                durable = scheduler.mini_batches
                published = publisher.step(durable)
                news = self._ledger.read(block_ms=None if busy or published else _IDLE_MS)
                if news and not busy and not published:
                    time.sleep(_GATHER_S)  # whoever comes in this while shares one entry, one sync, one round trip
                now = time.monotonic()
                failure = self._enter(news=news, publisher=publisher, inits=inits, stall=stall, nodes=nodes, now=now)
                self._ledger.settle(now, at_once=not news)
                if busy or published:
                    stall.moved(now)
                if published:
                    stall.first_mini_batch()
                if now >= self._tick_at:
                    failure = failure or self._tick(now, scheduler, publisher, nodes, stall)
                if failure is None and scheduler.closing is not None and scheduler.mini_batches == 0:
                    failure = JobFailure(
                        code="EMPTY_INPUT", summary=f"There is no file in {', '.join(self._spec.data_paths())}."
                    )
                if failure is not None:
                    self._move(JobState.FAILED, failure)
                    return
                if scheduler.closing is not None and self._ledger.decided.count >= scheduler.mini_batches:
                    self._all_decided(scheduler)
                    return
                if any(not entry.outcomes for entry in news) and (
                    self._registry.state(self._job_id) is not JobState.PROCESSING
                ):
                    return
            except CONNECTION_ERRORS as error:
                self._wait_for_redis(error)
                publisher.rewind()
                stall.moved(time.monotonic())  # nobody could make progress
            except OSError as error:
                self._move(
                    JobState.FAILED, JobFailure(code="INPUT_UNREADABLE", summary=f"The input can't be read: {error}")
                )
                return

    def _changed_inputs(self) -> JobFailure | None:
        """A job that goes on keeps its plan, so what it has yet to do must still be what was planned."""
        if self._reopening is None or self._reopening.accept_changed_inputs:
            return None
        changes = changed_inputs(self._folder.path, self._ledger.decided)
        if not changes:
            return None
        return JobFailure(
            code="INPUTS_CHANGED",
            summary="The inputs are not what they were when they were scheduled: " + "; ".join(changes),
            hint="put them back, or go on without them by accept_changed_inputs",
        )

    def _schedule(self, scheduler: Scheduler) -> bool:
        if scheduler.closing is not None:
            return False
        more = scheduler.step(_SLICE_S)
        if not more:
            self._overview.say(
                f"Scheduling finished: {scheduler.mini_batches:,} mini-batches with {scheduler.items:,} items "
                f"in {time.monotonic() - self._began:.2f} s."
            )
        return more

    def _enter(
        self,
        *,
        news: list[News],
        publisher: Publisher,
        inits: InitWatch,
        stall: StallWatch,
        nodes: NodeWatch,
        now: float,
    ) -> JobFailure | None:
        outcomes = [outcome for entry in news for outcome in entry.outcomes]
        failure = None
        if outcomes:
            inits.ran()
            stall.moved(now)
            accepted, signatures = self._ledger.enter(outcomes)
            if self._speculation is not None:
                for outcome in accepted:
                    self._speculation.observe(outcome.run_s)
            publisher.decided(len(accepted))
            for signature in signatures:
                self._announce(signature)
            if any(outcome.failed_items for outcome in accepted):
                failure = over_threshold(self._spec, self._ledger.progress, self._ledger.errors)
        for entry in news:
            if entry.init_failure is not None:
                self._log.warning("init_failed", node=entry.init_failure.node, process=entry.init_failure.process)
                failure = failure or inits.failed(entry.init_failure, nodes.slots)
        return failure

    def _tick(
        self, now: float, scheduler: Scheduler, publisher: Publisher, nodes: NodeWatch, stall: StallWatch
    ) -> JobFailure | None:
        self._tick_at = now + _TICK_S
        self._queue.renew(self._token, ttl_ms=self._settings.leader_ms)
        progress = self._ledger.progress
        progress.lost += nodes.look()
        progress.scheduled = scheduler.mini_batches
        progress.items_scheduled = scheduler.items
        progress.listing_done = scheduler.closing is not None
        progress.published = publisher.next_id
        progress.running = self._queue.leased()
        if self._speculation is not None and publisher.next_id == progress.scheduled and progress.listing_done:
            self._second_deliveries(self._speculation, now)
        self._show()
        self._overview.progress(progress, now - self._began, now)
        failure = stall.stalled(now, nodes=nodes.alive, running=progress.running)
        return failure or over_threshold(self._spec, progress, self._ledger.errors)

    def _second_deliveries(self, speculation: Speculation, now: float) -> None:
        progress = self._ledger.progress
        stragglers = speculation.stragglers(
            self._queue.leases(), now, decided=progress.decided, total=progress.scheduled
        )
        if stragglers:
            made = self._queue.speculate(stragglers)
            self._log.info("stragglers_given_out_again", mini_batches=[number for number, _ in stragglers], made=made)

    def _show(self) -> None:
        text = msgspec.json.encode(self._ledger.progress)
        if text != self._shown:
            self._queue.show({"progress": text}, event=("progress", text))
            self._shown = text

    def _announce(self, signature: Signature) -> None:
        self._log.info("mini_batch_failed", category=signature.category, message=signature.message)
        fields = {"category": signature.category, "message": signature.message, "traceback": signature.traceback}
        self._queue.show({"errors": "1"}, event=("error", msgspec.json.encode({**fields, "count": signature.count})))

    def _wait_for_redis(self, error: Exception) -> None:
        """Redis is away. Wait for it, then see whether this leader still leads and what Redis has forgotten.

        Raises:
            Fenced: another process leads by now, or Redis doesn't come back.
        """
        self._log.warning("redis_away", error=str(error))
        until = time.monotonic() + _AWAY_S
        while not self._resigning:
            try:
                run_id = server_run_id(self._redis)
                self._queue.renew(self._token, ttl_ms=self._settings.leader_ms)
            except CONNECTION_ERRORS as again:
                if time.monotonic() > until:
                    raise Fenced("Redis doesn't come back") from again
                time.sleep(0.1)  # there is no event for a server that comes back
                continue
            if run_id != self._run_id:
                self._ledger.start_over()
            self._run_id = run_id
            self._log.info("redis_back", run_id=run_id)
            return

    # The end

    def _all_decided(self, scheduler: Scheduler) -> None:
        progress = self._ledger.progress
        progress.scheduled, progress.items_scheduled = scheduler.mini_batches, scheduler.items
        progress.listing_done, progress.running = True, 0
        progress.published = scheduler.mini_batches
        self._ledger.settle(time.monotonic(), at_once=True)
        self._show()
        failure = over_threshold(self._spec, progress, self._ledger.errors)
        if failure is None and self._spec.writes_rows and progress.rows == 0:
            failure = nothing_returned(self._ledger.errors)
        failpoints.reach("finish.all_decided")
        if failure is not None:
            self._move(JobState.FAILED, failure)
        else:
            self._move(JobState.FINALIZING)

    def _move(self, to: JobState, failure: JobFailure | None = None) -> None:
        if failure is not None and not failure.first_cause:
            failure = with_cause(failure, self._ledger.errors)
        try:
            self._registry.move(self._job_id, to, failure)
        except (Conflict, NotFound) as error:
            self._log.info("move_refused", to=to, reason=str(error))

    def _finalize(self) -> JobResult | None:
        """Let the workers shut down, then have the output put together; returns the result unless interrupted."""
        failpoints.reach("finish.finalizing")
        self._overview.say("All mini-batches are decided; workers shut down.")
        self._wait_for_agents()
        if self._registry.state(self._job_id) is not JobState.FINALIZING:
            return None  # Redis has forgotten that far back
        made = Concatenated("", 0, "")
        if self._spec.writes_rows and not self._resigning:
            self._overview.say("Concatenation begins.")
            found = self._concatenate()
            if found is None:
                return None
            made = found
        if made.problem:
            failure = JobFailure(code="CONCATENATION_FAILED", summary=made.problem)
            self._move(JobState.FAILED, failure)
            return self._conclude(JobState.FAILED)
        return self._conclude(JobState.COMPLETED, made)

    def _wait_for_agents(self) -> None:
        until = time.monotonic() + _LEAVE_S
        while not self._resigning and time.monotonic() < until:
            try:
                if not any(self._queue.sessions()):
                    return
                self._enter_late(self._ledger.read(block_ms=_IDLE_MS))
                self._keep_leading()
            except CONNECTION_ERRORS as error:
                self._wait_for_redis(error)
                if self._registry.state(self._job_id) is JobState.PROCESSING:
                    return  # Redis has forgotten that they were to leave

    def _enter_late(self, news: list[News]) -> Concatenated | None:
        """While finalizing nothing can be decided any more; what still comes is about workers and the output."""
        return next((entry.concatenated for entry in news if entry.concatenated is not None), None)

    def _keep_leading(self) -> None:
        now = time.monotonic()
        if now >= self._tick_at:
            self._tick_at = now + _TICK_S
            self._queue.renew(self._token, ttl_ms=self._settings.leader_ms)
            self._queue.reap(max_lost=self._spec.lost_leases, max_lease_ms=self._settings.lease_ms)

    def _concatenate(self) -> Concatenated | None:
        ask_at, asked, last, attempt, failed_s = 0.0, 0, -1, "", _FIRST_PAUSE_S
        while not self._resigning:
            try:
                now = time.monotonic()
                status = self._registry.status(self._job_id)
                if status.state is not JobState.FINALIZING:
                    return None
                progress = status.progress
                if asked and progress.bytes_concatenated != last:
                    last, ask_at = progress.bytes_concatenated, now + _CONCATENATE_AGAIN_S
                if concatenation_failed(self._redis, self._job_id, attempt=attempt):
                    # It was killed, or the disk is full: that may last.
                    attempt, ask_at = "", now + failed_s
                    failed_s = min(_CONCATENATE_AGAIN_S, 2 * failed_s)
                    self._log.warning("concatenation_interrupted", again_in_s=ask_at - now)
                if now >= ask_at:
                    asked += 1
                    attempt = f"{self._queue.term}-{asked}"
                    ask_for_concatenation(self._redis, self._job_id, attempt=attempt)
                    ask_at = now + _CONCATENATE_AGAIN_S
                made = self._enter_late(self._ledger.read(block_ms=_IDLE_MS))
                if made is not None:
                    self._ledger.progress.bytes_concatenated = made.length
                    self._ledger.progress.bytes_to_concatenate = made.length
                    return made
                self._keep_leading()
            except CONNECTION_ERRORS as error:
                self._wait_for_redis(error)
        return None

    def _conclude(self, state: JobState, made: Concatenated | None = None) -> JobResult:
        """Record how the job ended: first in the folder, then on Redis."""
        self._ledger.settle(time.monotonic(), at_once=True)
        status = self._registry.status(self._job_id)
        progress = self._ledger.progress
        progress.running = 0
        closing = read_closing(self._folder.path)
        failpoints.reach("finish.before_result")
        result = JobResult(
            job_id=self._job_id,
            state=state,
            started=status.started,
            ended=self._registry.now(),
            progress=progress,
            output=made.path if made else "",
            output_bytes=made.length if made else 0,
            output_sha256=made.sha256 if made else "",
            order=closing.order if closing else "",
            failure=status.failure,
        )
        write_job_result(self._folder.logs, result, self._ledger.errors, self._spec.data_paths())
        result = self._folder.conclude(result)
        failpoints.reach("finish.after_result")
        self._overview.say(f"The job has {state}.")
        if state is JobState.COMPLETED:
            self._move(JobState.COMPLETED)
        failpoints.reach("finish.after_state")
        return result

    def _show_end(self, end: JobState) -> None:
        """Let Redis have the recorded state: a leader may have died before, Redis may have forgotten it since."""
        state = self._registry.state(self._job_id)
        if state is JobState.PROCESSING and end is JobState.COMPLETED:
            self._move(JobState.FINALIZING)
        if state is not end:
            self._move(end)

    def _retire(self, result: JobResult) -> None:
        """The result is recorded: show it, wait for the agents to let go, and clean up."""
        self._show_end(result.state)
        text = msgspec.json.encode(result.progress)
        self._queue.show(
            {"progress": text, "ended": repr(result.ended)}, event=("end", msgspec.json.encode(result.state))
        )
        self._wait_for_agents()
        self._show_end(result.state)
        for leftover in self._folder.output_file(self._spec).parent.glob(f".merging-{self._job_id}-*"):
            leftover.unlink(missing_ok=True)
        self._registry.retire(self._job_id)
        self._log.info("job_ended", state=result.state)
