"""Leads one job in one thread, from stage to stage (`policy/stages.py`), until the job has ended.

All state can be recovered from the job folder and Redis, so a leader may die at any point: the next one, with a higher
term, reads what those before it have logged, and continues.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from parallelrun_core.errors import Fenced, NewerSchema
from parallelrun_core.figures import counted
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.folder.records import JobRecord, JobResult
from parallelrun_core.folder.takeover import lost_rows
from parallelrun_core.service import failpoints
from parallelrun_core.service.pacing import Every
from parallelrun_core.store.connection import CONNECTION_ERRORS
from parallelrun_core.wire.masking import Mask
from parallelrun_core.wire.outcome import LostRows
from parallelrun_core.wire.states import JobState
from parallelrun_master.job_end import check_end, recorded_end
from parallelrun_master.leader.finishing import Finishing
from parallelrun_master.leader.job_context import JobContext
from parallelrun_master.leader.processing import Processing
from parallelrun_master.leader.recovery import recover
from parallelrun_master.leadership import Leadership
from parallelrun_master.planning.apart import Hung
from parallelrun_master.policy.error_groups import ErrorGroups
from parallelrun_master.policy.setbacks import HANG, INPUT_TROUBLE, STORE_AWAY, Setback
from parallelrun_master.policy.stages import Stage
from parallelrun_master.publishing.scheduling import InputTrouble, StoreTrouble
from parallelrun_master.reports import Reports
from parallelrun_master.reports.advice import lines_of_advice
from parallelrun_master.reports.result import write_job_result
from parallelrun_master.reports.tries import keep_tries
from parallelrun_master.term_end import TermEnd, common_setback, words_of
from parallelrun_master.unreadable_job import fail_unreadable_job

if TYPE_CHECKING:
    from parallelrun_core.store.connection import Redis
    from parallelrun_master.settings import MasterSettings

_ASK_S = 0.5


class Leader:
    """Leads one job. `run()` returns when the job has ended or another process leads it.

    Args:
        leave: ends the process, even while the leading thread waits for a file system that doesn't answer.
        record: what was submitted, if the caller has just read it.

    Raises:
        NotFound: there is no such job.
        NewerSchema: it was created by a newer release.
        CorruptLog: what was submitted can't be read.
    """

    def __init__(
        self,
        redis: Redis,
        job_id: str,
        settings: MasterSettings,
        leave: Callable[[], object] = lambda: None,
        record: JobRecord | None = None,
    ) -> None:
        self._redis = redis
        self._folder = JobFolder(settings.root, job_id)
        self._record = record or self._folder.record()
        self._spec = self._record.job_spec()
        self._mask = Mask({"environment_variables": self._spec.environment_variables})
        self._settings = settings
        self._begin()
        self._leave = leave
        self._is_resigning = False
        self._lost: list[LostRows] = []
        """Rows that the next term has to make again."""
        self._leads_again = False
        self._has_checked = False
        """Whether what was taken over is intact, as far as it hasn't been made again."""
        self._concluded: tuple[JobResult, ErrorGroups] | None = None
        """How the job has ended, if this process has concluded it."""

    def _begin(self) -> None:
        """Become a candidate."""
        self._leadership = Leadership(self._redis, self._folder, self._settings)

    @property
    def stage(self) -> Stage:
        """Return what it is doing, or how its term has ended."""
        return self._leadership.stages.now

    def resign(self) -> None:
        """Stop leading at the next round, so that another master can take over at once. Safe in a signal handler."""
        self._leadership.is_resigning = self._is_resigning = True

    def run(self) -> None:
        """Lead until the job has ended, another process leads it, or `resign()` was called.

        Raises one of `CONNECTION_ERRORS` when Redis is away in a stage that doesn't wait for it, and what is a bug.
        """
        self._run_term()
        while self._leads_again and not self._is_resigning:
            self._leads_again = False
            self._begin()
            self._run_term()

    def _run_term(self) -> None:
        leadership = self._leadership
        if not leadership.acquire():
            return
        leadership.log.info("leading")
        failpoints.reach("lead.acquired")
        limit_s = self._spec.task_overhead_timeout
        term_end = TermEnd(self._redis, leadership, self._mask, setback_of, limit_s=limit_s)
        with term_end.at_error(self._end_damaged):
            with term_end.at_hang(self._leave):
                end = self._lead()
            leadership.resign()
            leadership.stages.enter(end)
            self._advise()

    def _advise(self) -> None:
        """Store what the first look at the job needs, and add to job_result.txt what would make it faster. It has
        ended, so nothing waits for this.
        """
        if self._concluded is None or self._spec.command:
            return
        result, errors = self._concluded
        keep_tries(self._folder, result)
        generation = self._folder.generation()
        if lines := lines_of_advice(self._folder, result):
            with suppress(OSError):
                if self._folder.generation() == generation:  # else it goes on
                    write_job_result(self._folder.logs, result, errors, self._spec, lines)

    def _end_damaged(self, why: str) -> None:
        """The job fails for what is damaged, and the result is recorded without what the leader would have read."""
        why = self._mask.printable(why)
        self._leadership.log.error("job_damaged", reason=why)
        result = fail_unreadable_job(self._redis, self._folder, why, term=self._leadership.term)
        if result is not None:
            with suppress(OSError):
                write_job_result(self._folder.logs, result, ErrorGroups(self._mask), self._spec)

    def _lead(self) -> Stage:
        """Continue where earlier terms have ended; returns how this one does."""
        with self._reports() as reports:
            job = recover(
                self._redis,
                self._leadership,
                self._folder,
                self._record,
                self._spec,
                reports=reports,
                lost=self._lost,
            )
            self._lost = []
            finishing = Finishing(job, self._settings)
            result = recorded_end(job.registry, self._folder)
            is_ours = result is None
            while result is None:
                match job.state():
                    case JobState.QUEUED | JobState.PROCESSING if job.is_canceled():
                        job.move(JobState.CANCELED)  # Redis has forgotten it
                    case JobState.QUEUED:
                        self._leadership.stages.enter(Stage.STARTING)
                        if self._has_lost_what_was_taken_over(job):
                            return Stage.RESIGNED
                        _start(job)
                    case JobState.PROCESSING:
                        self._leadership.stages.enter(Stage.PROCESSING)
                        Processing(job, self._settings).run()
                    case JobState.FINALIZING if not job.is_all_decided:
                        job.reopen_processing()
                    case JobState.FINALIZING:
                        self._leadership.stages.enter(Stage.FINALIZING)
                        if (concatenated := finishing.finalize()) is not None:
                            if finishing.can_mend(concatenated):
                                self._lost, self._leads_again = concatenated.lost, True
                                return Stage.RESIGNED
                            self._leadership.stages.enter(Stage.CONCLUDING)
                            result = finishing.conclude_with(concatenated)
                    case None:
                        raise Fenced("Redis has forgotten the job")
                    case ended:
                        check_end(job.registry, self._folder)
                        self._leadership.stages.enter(Stage.CONCLUDING)
                        result = finishing.conclude(ended)
                if self._leadership.is_resigning:
                    return Stage.RESIGNED
            self._leadership.stages.enter(Stage.RETIRING)
            self._concluded = (result, job.ledger.errors) if is_ours else None
            finishing.retire(result)
            return Stage.RETIRED

    def _has_lost_what_was_taken_over(self, job: JobContext) -> bool:
        """Return whether rows that came from an earlier job are not what was committed: the next
        term makes them again.
        """
        if self._record.resumed is None or job.reopening is not None or self._has_checked:
            return False
        self._has_checked = True
        ask_again = Every(_ASK_S)

        def is_broken_off() -> bool:
            is_canceled = ask_again.is_due(time.monotonic()) and job.is_canceled()
            return is_canceled or self._leadership.is_resigning

        self._lost = list(lost_rows(self._folder, is_broken_off))
        self._leads_again = bool(self._lost)
        return self._leads_again

    @contextmanager
    def _reports(self) -> Iterator[Reports]:
        """The reports of this term, closed at its end; they say when that comes early, as far as the disk permits.

        They are left as they are when another process may lead, whose reports they would disturb.
        """
        reports = Reports(self._folder, self._spec, self._leadership.term, self._mask)
        try:
            yield reports
        except (Fenced, *CONNECTION_ERRORS):
            raise
        except Exception as error:
            with suppress(OSError):
                if not isinstance(error, NewerSchema):
                    why = self._mask.printable(words_of(error, setback_of(error)))
                    reports.say(f"Term {self._leadership.term} ends early: {why}")
                reports.close()
            raise
        reports.close()


def _start(job: JobContext) -> None:
    """Let the job be processed, unless it was canceled meanwhile."""
    if job.is_canceled():
        return
    job.reports.begin()
    if job.ledger.progress.resumed and job.reopening is None:
        resumed, earlier = job.ledger.progress.resumed, job.spec.resume_from
        job.reports.say(f"Took over {counted(resumed, 'finished mini-batch')} from job {earlier}.")
    job.start()


def setback_of(error: Exception) -> Setback:
    """Return which kind of setback this is. It ends the term: what was written last may be torn, so
    nothing is retried.
    """
    if isinstance(error, InputTrouble):
        return STORE_AWAY if isinstance(error, StoreTrouble) else INPUT_TROUBLE
    if isinstance(error, Hung):
        return HANG
    return common_setback(error)
