"""The job that a term leads, as far as all of its stages share it."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Final

import msgspec

from parallelrun_core.errors import Conflict, NotFound
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.folder.manifest import Closing
from parallelrun_core.folder.records import JobRecord, Reopening
from parallelrun_core.spec import JobSpec
from parallelrun_core.store.connection import Redis
from parallelrun_core.store.registry import Registry
from parallelrun_core.wire.failure import JobFailure
from parallelrun_core.wire.states import JobState
from parallelrun_master.leadership import Leadership
from parallelrun_master.ledger.job_warnings import JobWarnings
from parallelrun_master.ledger.ledger import Ledger
from parallelrun_master.policy.error_groups import with_cause
from parallelrun_master.policy.pace import PaceKeeper
from parallelrun_master.reports import Reports

_MOST_DAMAGE: Final = 20


class JobContext:
    """A job in one term, complete from the beginning: `recover()` makes it. What moves the job raises `Fenced` once
    another term has begun.

    Args:
        spec: the record's.
        reopening: the last one; None in the first generation.
    """

    def __init__(
        self,
        redis: Redis,
        leadership: Leadership,
        folder: JobFolder,
        record: JobRecord,
        spec: JobSpec,
        *,
        ledger: Ledger,
        reports: Reports,
        warnings: JobWarnings,
        reopening: Reopening | None,
    ) -> None:
        self.redis = redis
        self.leadership = leadership
        self.queue = leadership.queue
        self.log = leadership.log
        self.registry = Registry(redis)
        self.job_id = folder.job_id
        self.folder = folder
        self.record = record
        self.spec = spec
        self.parent = record.parent
        self.path_rule = folder.path_rule(record)
        self.ledger = ledger
        self.reports = reports
        self.reopening = reopening
        self.warnings = warnings
        self.began = time.monotonic()
        """When this term did."""
        self.closing: Closing | None = None
        """The manifest's, if it was complete when this term began."""
        self.damage: list[str] = []
        """What the disk has damaged and this term has mended, in words for the user."""
        self.remarks: list[str] = []
        """Sentences about how it runs that users would not expect: they are among the warnings of the result."""
        self.pace: PaceKeeper | None = None
        """Set by `recover()`, once it knows what earlier terms have decided."""
        self._started = 0.0
        self._shown = b""

    def state(self) -> JobState | None:
        return self.registry.state(self.job_id)

    def is_canceled(self) -> bool:
        """Return whether the user has asked for the end of this generation, whatever Redis knows."""
        return self.folder.has_cancel(self.queue.generation)

    def start(self) -> None:
        """Let the job be processed; it began now, or when this term did so first."""
        self.show_progress()  # before the state says that it runs: what Redis has is of the run before
        self.move(JobState.PROCESSING)
        self._started = self._started or self.registry.now()
        self.queue.show({"started": repr(self._started)})

    def reopen_processing(self) -> None:
        """Process a job again that is finalizing: something in it is not decided any more."""
        missing = self.ledger.progress.scheduled - self.ledger.progress.decided
        subject = "1 mini-batch has" if missing == 1 else f"{missing:,} mini-batches have"
        message = f"{subject} no decision any more; the job goes back to processing"
        if self.damage:  # the reason was said
            self.reports.say(f"{message}.")
        else:
            self.damaged(message)
        self.move(JobState.PROCESSING)

    def move(self, to: JobState, failure: JobFailure | None = None) -> None:
        """Move the job to a state, unless somebody else was faster."""
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
        printable = self.reports.mask.printable
        return msgspec.structs.replace(failure, **{name: printable(getattr(failure, name)) for name in fields})

    def note_pace(self) -> None:
        """Bring up to date what the progress says of the job's pace."""
        if self.pace is not None:
            self.pace.note(self.ledger.progress, time.time(), first_try_at=self.ledger.first_try_at)

    def show_progress(self) -> None:
        """Publish the job's progress, and notify those who watch it."""
        self.note_pace()
        text = msgspec.json.encode(self.ledger.progress)
        if text != self._shown:
            self.queue.show({"progress": text}, event=("progress", text))
            self._shown = text

    def damaged(self, message: str, **fields: object) -> None:
        """Say that something was damaged, wherever somebody may look: logs, events, and the job's result."""
        self.log.error("damaged", what=message, **fields)
        self.reports.say(f"Damaged: {message}.")
        if len(self.damage) < _MOST_DAMAGE:
            self.damage.append(f"{message[:1].upper()}{message[1:]}.")
        error = {"category": "DAMAGED", "message": message, "traceback": "", "count": 1}
        self.queue.announce("error", msgspec.json.encode(error))

    def restore_generation(self) -> None:
        """Write again what the disk has lost of the last reopening: others take the job for an earlier generation."""
        if self.reopening is not None and self.folder.generation() < self.reopening.generation:
            with suppress(Conflict):  # it was only hidden for a moment
                self.folder.reopen(self.reopening)
            self.damaged(f"the record of generation {self.reopening.generation} was lost, and is written again")

    @property
    def is_all_decided(self) -> bool:
        """Return whether each mini-batch has a decision, if it is known how many there are."""
        progress = self.ledger.progress
        return not progress.listing_done or progress.decided >= progress.scheduled

    def wait_for_redis(self, error: Exception) -> None:
        """Redis is away: wait for it. What it may have forgotten since then is read again.

        Raises:
            Fenced: another process leads by now, or Redis doesn't come back.
        """
        if self.leadership.wait_for_redis(error):
            self.ledger.start_over()
