"""One leader's term: what its phases share, and how it can be interrupted."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, suppress
from typing import TYPE_CHECKING

import msgspec

from parallelrun_core.errors import Conflict, Fenced, NotFound
from parallelrun_core.failure import JobFailure
from parallelrun_core.folder.decisions import NAME as DECISIONS
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.folder.manifest import NAME as MANIFEST
from parallelrun_core.folder.manifest import read_closing
from parallelrun_core.folder.term_log import terms
from parallelrun_core.service.heartbeat import heartbeat, own_cpu_clock
from parallelrun_core.service.telemetry import logger
from parallelrun_core.states import JobState
from parallelrun_core.store.connection import CONNECTION_ERRORS, ServerReplaced, server_run_id
from parallelrun_core.store.leader_queue import LeaderQueue
from parallelrun_core.store.registry import Registry
from parallelrun_master.journals import finished
from parallelrun_master.ledger import Ledger
from parallelrun_master.policy import setbacks
from parallelrun_master.policy.error_groups import ErrorGroups, with_cause
from parallelrun_master.policy.setbacks import Setback
from parallelrun_master.reports import Reports

if TYPE_CHECKING:
    from parallelrun_core.store.connection import Redis
    from parallelrun_master.settings import MasterSettings

_TICK_S = 0.5
_TICKS_PER_LEASE = 10
_LOOKS_PER_LEASE = 5
_AWAY_S = 60.0


class Term:
    """One leader's term at one job. It begins with `begin()`."""

    ledger: Ledger
    reports: Reports

    def __init__(self, redis: Redis, job_id: str, settings: MasterSettings) -> None:
        self.redis = redis
        self.job_id = job_id
        self.settings = settings
        self.registry = Registry(redis)
        self.queue = LeaderQueue(redis, job_id)
        self.folder = JobFolder(settings.root, job_id)
        record = self.folder.record()
        self.spec, self._resumed = record.job_spec(), record.resumed
        self.log = logger(job_id=job_id)
        self.resigning = False
        self.began = time.monotonic()
        self._token = secrets.token_hex(16)
        self.mark = 0
        """How much earlier terms have made durable: decisions, and mini-batches in the manifest."""
        self._tick_at = 0.0
        self._tick_s = min(_TICK_S, min(settings.leader_seconds, settings.lease_seconds) / _TICKS_PER_LEASE)
        self._run_id = ""
        self._started = 0.0
        self._shown = b""
        self._open = ExitStack()

    def begin(self) -> bool:
        """Draw a term; False while another process leads."""
        number = self.queue.acquire(self._token, ttl_ms=self.settings.leader_ms, folder_term=self._highest())
        self.log = self.log.bind(term=number)
        return number > 0

    def _highest(self) -> int:
        """The highest term that has a file."""
        return max([0, *terms(self.folder.path, DECISIONS), *terms(self.folder.path, MANIFEST)])

    def renewed(self, hung: Callable[[], object]) -> AbstractContextManager[None]:
        """While this lasts, leadership is renewed as long as the calling thread does something.

        Args:
            hung: called when it has done nothing for a whole lease; see `heartbeat`.
        """
        every_s = self.settings.leader_seconds / _LOOKS_PER_LEASE
        return heartbeat(self.renew, hung, every_s=every_s, cpu_used=own_cpu_clock(), hung_after=_LOOKS_PER_LEASE)

    def recover(self) -> None:
        """Read what earlier terms have decided, and continue from there.

        Raises:
            FileExistsError: this term has begun before.
        """
        self._run_id = server_run_id(self.redis)
        self.reports = Reports(self.folder, self.spec, self.queue.term)
        self._open.callback(self.reports.close)
        reopenings = self.folder.reopenings()
        self.reopening = reopenings[-1] if reopenings else None
        generation = self.reopening.generation if self.reopening is not None else 0
        errors = ErrorGroups(self.reports.mask)
        self.ledger = Ledger(
            self.folder.path, self.queue, self.queue.term, self.reports.tries, errors, generation=generation
        )
        self.mark = self.ledger.decided.count
        if self.reopening is not None:
            self.queue.generation = self.reopening.generation
        for each in reopenings:  # a retry that was interrupted is still to be done
            if each.retry_failed:
                self.ledger.reopen(each.generation, each.mini_batches)
        if self.queue.term > 1 and not self.queue.checkpoint():
            self._adopt()
        earlier, progress = self.registry.status(self.job_id).progress, self.ledger.progress
        progress.retried, progress.lost = max(progress.retried, earlier.retried), earlier.lost
        progress.running = earlier.running
        progress.resumed = self._resumed.mini_batches if self._resumed else 0
        if (closing := read_closing(self.folder.path)) is not None:
            progress.scheduled = closing.mini_batches
            progress.items_scheduled = max(closing.items, progress.items_scheduled)  # of a table, what was read
            progress.published, progress.listing_done = earlier.published, True
        self.reports.say(f"Term {self.queue.term} begins.")

    def _adopt(self) -> None:
        """Redis has forgotten the job: others have led, and nothing is published. Take what agents have finished."""
        adopted = self.ledger.adopt(finished(self.folder, self.ledger.decided, self.queue.generation))
        if adopted:
            self.log.warning("journals_adopted", mini_batches=adopted)
            self.reports.say(f"{adopted:,} mini-batches that agents finished before Redis forgot the job are kept.")

    def end(self) -> None:
        """Let another process lead at once."""
        self._open.close()
        self.queue.resign(self._token)

    def close_after(self, why: str) -> None:
        """Close what is open, and report why, as far as the disk permits."""
        with suppress(OSError):
            if "reports" in vars(self):
                self.reports.say(f"Term {self.queue.term} ends early: {why}")
            self._open.close()

    def set_back(self, setback: Setback, why: str) -> None:
        """This term can't continue: let another process lead after a pause, or fail the job. Touches no file."""
        why = self._masked(why)
        count = self.queue.count_setback(setback.kind, mark=self.mark)
        failure, pause_s = setback.failure(count, why), setbacks.pause_s(count)
        self.log.warning(setback.kind, count=count, reason=why, pause_s=pause_s)
        error = {"category": setback.code, "message": why, "traceback": "", "count": count}
        self.queue.announce("error", msgspec.json.encode(error))
        if failure is not None:
            with suppress(Conflict, Fenced, NotFound):
                self.registry.move(self.job_id, JobState.FAILED, failure, term=self.queue.term)
                pause_s = 0  # so that its end is recorded
        self.queue.resign(self._token, pause_ms=round(1000 * pause_s))

    def tick(self, now: float) -> bool:
        """Whether it is time for what is done a few times a second; leadership has then been renewed.

        Raises:
            Fenced: another term has begun.
            ConnectionError: Redis was restarted.
        """
        if now < self._tick_at:
            return False
        self._tick_at = now + self._tick_s
        self.renew()
        self._check_server()
        return True

    def _check_server(self) -> None:
        # A connection that broke while nobody used it is replaced without an error, by redis-py's pool or by a proxy.
        if server_run_id(self.redis) != self._run_id:
            raise ServerReplaced("Redis was restarted")

    def renew(self) -> None:
        """Renew leadership.

        Raises:
            Fenced: another term has begun.
        """
        self.queue.renew(self._token, ttl_ms=self.settings.leader_ms)

    def ms_to_tick(self, now: float) -> int:
        """Milliseconds until the next tick: how long a leader with nothing else to do may wait for entries."""
        return max(1, int(1000 * (self._tick_at - now)))

    def state(self) -> JobState | None:
        """The job's state, as Redis has it."""
        return self.registry.state(self.job_id)

    def start(self) -> None:
        """Let the job be processed; it began now, or when this term did so first.

        Raises:
            Fenced: another term has begun.
        """
        self.move(JobState.PROCESSING)
        self._started = self._started or self.registry.now()
        self.queue.show({"started": repr(self._started)})

    def move(self, to: JobState, failure: JobFailure | None = None) -> None:
        """Move the job to a state, unless somebody else was faster.

        Raises:
            Fenced: another term has begun.
        """
        if failure is not None:
            failure = self._with_cause(failure)
            self.reports.log.error(f"The job fails: {failure.code}: {failure.summary}")
        self.reports.log.info(f"Setting job state to {to}.")
        try:
            self.registry.move(self.job_id, to, failure, term=self.queue.term)
        except (Conflict, NotFound) as error:
            self.log.info("move_refused", to=to, reason=str(error))

    def _with_cause(self, failure: JobFailure) -> JobFailure:
        """A failure with its first cause, and with secrets masked."""
        if not failure.first_cause:
            failure = with_cause(failure, self.ledger.errors)
        fields = ("summary", "first_cause", "traceback", "hint")
        return msgspec.structs.replace(failure, **{name: self._masked(getattr(failure, name)) for name in fields})

    def _masked(self, text: str) -> str:
        printable = text.encode(errors="backslashreplace").decode()  # names of files may be other than UTF-8
        return self.reports.mask.text(printable) if "reports" in vars(self) else printable

    def show_progress(self) -> None:
        """Publish the job's progress, and notify those who watch it."""
        text = msgspec.json.encode(self.ledger.progress)
        if text != self._shown:
            self.queue.show({"progress": text}, event=("progress", text))
            self._shown = text

    def wait_for_redis(self, error: Exception) -> None:
        """Redis is away: wait for it, then check whether this term still lasts and what Redis has forgotten.

        Raises:
            Fenced: another process leads by now, or Redis doesn't come back.
        """
        self.log.warning("redis_away", error=str(error))
        until = time.monotonic() + _AWAY_S
        while not self.resigning:
            try:
                run_id = server_run_id(self.redis)
                self.renew()
            except CONNECTION_ERRORS as again:
                if time.monotonic() > until:
                    raise Fenced("Redis doesn't come back") from again
                time.sleep(0.1)  # there is no event for a server that comes back
                continue
            if run_id != self._run_id:
                if self._highest() > self.queue.term:
                    raise Fenced("Redis has forgotten a later term")
                self.ledger.start_over()
            self._run_id = run_id
            self.log.info("redis_back", run_id=run_id)
            return
