"""The master role of one job: one thread, from phase to phase, until the job has ended.

All state can be had again from the job folder and Redis, so a leader may die at any point: the next one, with a higher
term, reads the books of those before it and goes on.
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING

from parallelrun_core import failpoints
from parallelrun_core.disk_trouble import is_disk_trouble
from parallelrun_core.errors import Conflict, Fenced, NewerSchema, NotFound
from parallelrun_core.failure import JobFailure
from parallelrun_core.states import JobState
from parallelrun_core.store.connection import CONNECTION_ERRORS
from parallelrun_master.finishing import Finishing
from parallelrun_master.processing import Processing
from parallelrun_master.term import Term

if TYPE_CHECKING:
    from redis import Redis

    from parallelrun_master.settings import MasterSettings

_MAX_CRASHES = 3
_DISK_PAUSE_S = 1.0


class Leader:
    """Leads one job. `run()` returns when the job has ended or another process leads it.

    Raises:
        NotFound: there is no such job.
        NewerSchema: a newer release has made it.
        CorruptLog: what was submitted can't be read.
    """

    def __init__(self, redis: Redis, job_id: str, settings: MasterSettings) -> None:
        self._term = Term(redis, job_id, settings)

    def resign(self) -> None:
        """Stop leading at the next round, so that another master can go on at once. Safe in a signal handler."""
        self._term.resigning = True

    def run(self) -> None:
        """Lead until the job has ended, another leads it, or `resign()` was called."""
        term = self._term
        if not term.begin():
            term.log.info("already_led")
            return
        term.log.info("leading")
        failpoints.reach("lead.acquired")
        try:
            with term.renewed():
                term.read_books()
                self._lead()
            term.end()
        except Fenced as error:
            term.log.warning("fenced", reason=str(error))
        except NewerSchema as error:
            term.log.error("job_too_new", reason=str(error))  # a master of that release may go on
            term.end()
        except CONNECTION_ERRORS:
            raise  # the next leader goes on
        except Exception as error:
            if isinstance(error, OSError) and is_disk_trouble(error):
                self._wait_for_the_disk(error)
            else:
                self._crashed(error)
                raise

    def _lead(self) -> None:
        term = self._term
        finishing = Finishing(term)
        result = term.folder.result()
        while result is None:
            match term.state():
                case JobState.QUEUED:
                    term.reports.begin()
                    if term.ledger.progress.resumed and term.reopening is None:
                        resumed, earlier = term.ledger.progress.resumed, term.spec.resume_from
                        term.reports.say(f"{resumed:,} mini-batches that are done were taken over from job {earlier}.")
                    term.move(JobState.PROCESSING)
                    term.queue.show({"started": repr(term.registry.now())})
                case JobState.PROCESSING:
                    Processing(term).run()
                case JobState.FINALIZING:
                    result = finishing.finalize()
                case None:
                    raise Fenced("Redis has forgotten the job")
                case ended:
                    result = finishing.conclude(ended)
            if term.resigning:
                return
        finishing.retire(result)

    def _wait_for_the_disk(self, error: OSError) -> None:
        """The job folder takes no more. What was written last may be torn, so another term has to go on, in a while."""
        self._term.log.warning("disk_full", error=str(error))
        time.sleep(_DISK_PAUSE_S)  # a disk gives no sign when it has room again
        self._term.end()

    def _crashed(self, error: Exception) -> None:
        """A fault of ours. Another leader may get through; a job that crashes every one must not do so for ever."""
        term = self._term
        term.log.exception("leader_crashed")
        if term.queue.count_crash() >= _MAX_CRASHES:
            summary = f"The master failed {_MAX_CRASHES} times: {type(error).__name__}: {error}"
            failure = JobFailure(code="MASTER_ERROR", summary=summary)
            with suppress(Conflict, Fenced, NotFound):
                term.registry.move(term.job_id, JobState.FAILED, failure, term=term.queue.term)
        term.end()
