"""The end of a term before that of its job: by an error, or because a file system doesn't answer.

What another leader may get through is a setback (`policy/setbacks.py`): one leads after a pause, or the job fails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from math import inf
from typing import TYPE_CHECKING

import msgspec

from parallelrun_core.errors import Conflict, CorruptLog, Fenced, NewerSchema, NotFound
from parallelrun_core.folder.disk_trouble import is_full, may_pass
from parallelrun_core.store.connection import CONNECTION_ERRORS
from parallelrun_core.store.registry import Registry
from parallelrun_core.wire.masking import Mask
from parallelrun_core.wire.states import JobState
from parallelrun_master.policy import setbacks
from parallelrun_master.policy.setbacks import CRASH, FULL, HANG, TROUBLE, Setback
from parallelrun_master.policy.stages import Stage

if TYPE_CHECKING:
    from parallelrun_core.store.connection import Redis
    from parallelrun_master.leadership import Leadership


def common_setback(error: Exception) -> Setback:
    """Return which kind of setback an error is in a term of any kind."""
    if not isinstance(error, OSError) or not may_pass(error):
        return CRASH  # a bug of ours: another leader may get through
    return FULL if is_full(error) else TROUBLE


def words_of(error: Exception, setback: Setback) -> str:
    return f"{type(error).__name__}: {error}" if setback is CRASH else str(error)


class TermEnd:
    """Ends the term of a leader who can't continue.

    Args:
        mask: hides secrets in what is reported when it can't be kept.
        setback_of: tells which kind of setback an error is.
        limit_s: how long a setback that is limited in time may come again and again.
    """

    def __init__(
        self,
        redis: Redis,
        leadership: Leadership,
        mask: Mask,
        setback_of: Callable[[Exception], Setback] = common_setback,
        *,
        limit_s: float = inf,
    ) -> None:
        self._registry = Registry(redis)
        self._leadership = leadership
        self._mask = mask
        self._setback_of = setback_of
        self._limit_s = limit_s

    def at_hang(self, leave: Callable[[], object]) -> AbstractContextManager[None]:
        """While this lasts, leadership is renewed, and ends when the calling thread does nothing for a whole lease.

        Args:
            leave: ends the process then: others can have its place.
        """

        def hung(why: str) -> None:
            self._set_back(HANG, why)
            leave()

        return self._leadership.renewed(hung)

    @contextmanager
    def at_error(self, fail_damaged: Callable[[str], object]) -> Iterator[None]:
        """While this lasts, the term ends as an error asks for. Raises one of `CONNECTION_ERRORS`, and what is a bug.

        Args:
            fail_damaged: fails the job, of which something can't be read, for this reason.
        """
        leadership = self._leadership
        try:
            yield
        except Fenced as error:
            leadership.stages.enter(Stage.FENCED)
            leadership.log.warning("fenced", reason=str(error))
        except NewerSchema as error:
            leadership.stages.enter(Stage.RESIGNED)
            leadership.log.error("job_too_new", reason=str(error))  # a master of that release can lead it
            leadership.resign()
        except CorruptLog as error:
            leadership.stages.enter(Stage.SET_BACK)
            fail_damaged(str(error))
            leadership.resign()
        except CONNECTION_ERRORS:
            leadership.stages.enter(Stage.CUT_OFF)
            raise  # the next leader continues
        except Exception as error:
            leadership.stages.enter(Stage.SET_BACK)
            setback = self._setback_of(error)
            if setback is CRASH:
                leadership.log.exception("leader_crashed")
            self._set_back(setback, words_of(error, setback))
            if setback is CRASH:
                raise

    def _set_back(self, setback: Setback, why: str) -> None:
        """Let another process lead after a pause, or fail the job. Touches no file."""
        leadership, queue, why = self._leadership, self._leadership.queue, self._mask.printable(why)
        count = queue.count_setback(setback.kind, mark=leadership.durable_before)
        lasted_s = queue.set_back_for_s(setback.kind)
        failure, pause_s = setback.failure(count, why, lasted_s, self._limit_s), setbacks.pause_s(count)
        leadership.log.warning(setback.kind, count=count, reason=why, pause_s=pause_s)
        error = {"category": setback.code, "message": why, "traceback": "", "count": count}
        queue.announce("error", msgspec.json.encode(error))
        if failure is not None:
            with suppress(Conflict, Fenced, NotFound):
                self._registry.move(queue.job_id, JobState.FAILED, failure, term=leadership.term)
                pause_s = 0  # so that its end is recorded
        leadership.resign(pause_ms=round(1000 * pause_s))
