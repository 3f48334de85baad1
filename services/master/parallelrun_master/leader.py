"""The master role of one job: one thread, from phase to phase, until the job has ended.

All state can be recovered from the job folder and Redis, so a leader may die at any point: the next one, with a higher
term, reads what those before it have logged, and continues.
"""

from __future__ import annotations

import sys
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from parallelrun_core.errors import Fenced, NewerSchema
from parallelrun_core.folder.disk_trouble import is_full, may_pass
from parallelrun_core.service import failpoints
from parallelrun_core.states import JobState
from parallelrun_core.store.connection import CONNECTION_ERRORS
from parallelrun_master.finishing import Finishing
from parallelrun_master.policy.setbacks import CRASH, FULL, HANG, INPUT_TROUBLE, TROUBLE, Setback
from parallelrun_master.processing import Processing
from parallelrun_master.scheduling import InputTrouble
from parallelrun_master.term import Term

if TYPE_CHECKING:
    from parallelrun_core.store.connection import Redis
    from parallelrun_master.settings import MasterSettings


class Leader:
    """Leads one job. `run()` returns when the job has ended or another process leads it.

    Args:
        leave: ends the process, even while the leading thread waits for a file system that doesn't answer.

    Raises:
        NotFound: there is no such job.
        NewerSchema: it was created by a newer release.
        CorruptLog: what was submitted can't be read.
    """

    def __init__(
        self, redis: Redis, job_id: str, settings: MasterSettings, leave: Callable[[], object] = lambda: None
    ) -> None:
        self._term = Term(redis, job_id, settings)
        self._leave = leave
        self._thread = 0

    def resign(self) -> None:
        """Stop leading at the next round, so that another master can take over at once. Safe in a signal handler."""
        self._term.resigning = True

    def run(self) -> None:
        """Lead until the job has ended, another process leads it, or `resign()` was called."""
        term = self._term
        self._thread = threading.get_ident()
        if not term.begin():
            term.log.info("already_led")
            return
        term.log.info("leading")
        failpoints.reach("lead.acquired")
        try:
            with term.renewed(self._hung):
                term.recover()
                self._lead()
            term.end()
        except Fenced as error:
            term.log.warning("fenced", reason=str(error))
        except NewerSchema as error:
            term.log.error("job_too_new", reason=str(error))  # a master of that release can lead it
            term.end()
        except CONNECTION_ERRORS:
            raise  # the next leader continues
        except Exception as error:
            setback, why = setback_of(error), str(error)
            if setback is CRASH:
                term.log.exception("leader_crashed")
                why = f"{type(error).__name__}: {error}"
            term.close_after(why)
            term.set_back(setback, why)
            if setback is CRASH:
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
                        term.reports.say(f"{resumed:,} finished mini-batches were taken over from job {earlier}.")
                    term.start()
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

    def _hung(self) -> None:
        """The leading thread has been waiting for longer than its lease: end it, so that others can have its place."""
        seconds = self._term.settings.leader_seconds
        self._term.set_back(HANG, f"a file system has not answered for {seconds:g} s, in {self._where()}")
        self._leave()

    def _where(self) -> str:
        """Where the leading thread is now: its innermost two functions."""
        stack = traceback.extract_stack(sys._current_frames()[self._thread])
        return ", called by ".join(f"{each.name} ({Path(each.filename).name})" for each in stack[:-3:-1])


def setback_of(error: Exception) -> Setback:
    """Which kind of setback this is. It ends the term: what was written last may be torn, so nothing is retried."""
    if isinstance(error, InputTrouble):
        return INPUT_TROUBLE
    if not isinstance(error, OSError) or not may_pass(error):
        return CRASH  # a bug of ours: another leader may get through
    return FULL if is_full(error) else TROUBLE
