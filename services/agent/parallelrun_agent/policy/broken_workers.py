"""Workers in which nothing succeeds any more: when they are replaced, and whether that costs a try. No I/O.

An engine inside a worker can die while its process lives: then each mini-batch that the worker gets fails, however good
it is. A script that notices says so (`WorkerBroken`). One that doesn't is judged by its neighbours: they succeed.
"""

from __future__ import annotations

from typing import Final

from parallelrun_agent.policy.worker import Worker
from parallelrun_agent.policy.worker_pool import WorkerPool
from parallelrun_core.wire.outcome import Failure

_IN_ROW: Final = 8
"""Failures in a row in one worker, while as many tries succeed in others, after which it is replaced."""
_MOST_IN_ROW: Final = 1 << 20
_UNCHARGED: Final = 3
"""Times for each worker that a script may give up its worker between two successes without using up a try."""


class BrokenWorkers:
    """The workers of a job on one node.

    Args:
        limit: the most workers that the job may have here.
    """

    def __init__(self, limit: int) -> None:
        self._most_given_up = _UNCHARGED * limit
        self._given_up = 0
        """Since the last success."""
        self._successes = 0
        self._in_row = _IN_ROW

    def succeeded(self, worker: Worker) -> None:
        """Record that a try has succeeded in this worker."""
        self._successes += 1
        self._given_up = worker.failures_in_row = 0

    def is_given_up(self, worker: Worker, failure: Failure, pool: WorkerPool) -> bool:
        """Replace a worker in which nothing succeeds; returns whether the mini-batch is to be run again uncharged."""
        has_given_up = failure.category == "WORKER_BROKEN"
        if (self.failed(worker) or has_given_up) and worker.stage == "ready":
            pool.replace(worker)
        return has_given_up and self.gave_up()

    def gave_up(self) -> bool:
        """Record that a script has given up its worker; returns whether that uses up no try.

        It does when nothing succeeds any more: the mini-batches may be what breaks the workers.
        """
        self._given_up += 1
        return self._given_up <= self._most_given_up

    def failed(self, worker: Worker) -> bool:
        """Record that a try has failed in this worker; returns whether it is to be replaced.

        Each replacement doubles the number of failures for the next one: where data are bad, new workers don't help.
        """
        if not worker.failures_in_row:
            worker.others_before = self._successes
        worker.failures_in_row += 1
        if worker.failures_in_row < self._in_row or self._successes - worker.others_before < self._in_row:
            return False
        self._in_row = min(_MOST_IN_ROW, 2 * self._in_row)
        return True
