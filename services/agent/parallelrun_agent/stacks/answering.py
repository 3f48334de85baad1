"""Answers requests for the stacks of a job's workers, in a thread of its own: nobody waits for it."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from parallelrun_agent.stacks.dumps import AskedWorker, stacks_of
from parallelrun_agent.users.worker_user import WorkerUser
from parallelrun_agent.workers.stack_memory import StackMemory
from parallelrun_agent.workers.worker_process import WorkerProcess
from parallelrun_core.folder.stacks import MOST_WORKERS, StacksRecord, write_stacks
from parallelrun_core.layout import Logs
from parallelrun_core.service.telemetry import logger
from parallelrun_core.service.threads import started_thread
from parallelrun_core.store.nodes import StacksRequest

log = logger()


class StackAnswers:
    """Answers to requests for the stacks of one job's workers on this node. Used by the agent's one thread.

    Args:
        code: the folder of the job's code.
        sanitize: makes words fit to be shown. Called in another thread.
    """

    def __init__(self, logs: Logs, node: str, *, code: str, sanitize: Callable[[str], str], user: WorkerUser) -> None:
        self._logs = logs
        self._node = node
        self._code = code
        self._shown = sanitize
        self._user = user
        self._answered = ""
        self._thread: threading.Thread | None = None
        self._is_closed = threading.Event()

    def answer(self, request: StacksRequest, processes: dict[str, WorkerProcess]) -> None:
        """Begin to answer a request that is new. One that comes meanwhile is answered when it is asked again."""
        if request.id == self._answered or (self._thread is not None and self._thread.is_alive()):
            return
        self._answered = request.id
        if request.node not in ("", self._node):
            return
        process_names = [name for name in sorted(processes) if request.process in ("", name)]
        signalled: list[AskedWorker] = []
        try:
            for process in (processes[name] for name in process_names[:MOST_WORKERS]):
                if process.stacks is not None:
                    signalled.append(_asked(process, process.stacks))
            left_out = len(process_names) - len(signalled)
            self._thread = started_thread("stacks", self._answer, request.id, signalled, left_out)
        except OSError as error:
            log.warning("stacks_not_shown", error=str(error))
            for worker in signalled:
                worker.close()

    def close(self) -> None:
        """Write no answer any more. Nobody waits for the thread: it has descriptors of its own, and ends within some
        seconds.
        """
        self._is_closed.set()

    def _answer(self, request: str, signalled: list[AskedWorker], left_out: int) -> None:
        try:
            workers = stacks_of(signalled, code=self._code, sanitize=self._shown, user=self._user)
            node_stacks = StacksRecord(id=request, node=self._node, at=time.time(), workers=workers, left_out=left_out)
            if not self._is_closed.is_set():
                with suppress(OSError):  # who has asked will hear that there was no answer
                    write_stacks(self._logs, node_stacks)
        except OSError as error:
            log.warning("stacks_not_shown", error=str(error))
        finally:
            for worker in signalled:
                worker.close()


def _asked(process: WorkerProcess, stacks: StackMemory) -> AskedWorker:
    """Return a worker by descriptors of its own: it may end meanwhile."""
    own_stacks = stacks.copy()
    try:
        return AskedWorker(process.process, process.pid, os.dup(process.pidfd), own_stacks)
    except OSError:
        own_stacks.close()
        raise
