"""The staging of one session: what the job machine asks for, and what it is told. Used by the agent's one thread."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from pathlib import Path

from parallelrun_agent.loop import EventLoop
from parallelrun_agent.policy.in_flight import Assignment
from parallelrun_agent.policy.job_machine import JobMachine
from parallelrun_agent.staging.cache import StageCache
from parallelrun_agent.staging.mini_batches import MiniBatches, StagedMiniBatch
from parallelrun_agent.staging.stager import Stager
from parallelrun_agent.staging.tree import JobTree
from parallelrun_core.errors import ParallelRunError
from parallelrun_core.mltable.input_plan import InputPlan
from parallelrun_core.wire.outcome import Failure

Events = AbstractContextManager[JobMachine]


class Staging:
    """Opened with its session, and closed with it.

    Args:
        folder: of the job.
        tree: where its files are to be.
        plans: of the job's inputs.
        timeout_s: how long the files of one mini-batch may take.
        beside: how much of the cache the job needs for something else, for as long as it is here.
        events: gets `staged` and `disk_failed`.
    """

    def __init__(
        self,
        cache: StageCache,
        folder: Path,
        tree: JobTree,
        plans: list[InputPlan],
        *,
        timeout_s: float,
        beside: Callable[[], int],
        loop: EventLoop,
        events: Events,
    ) -> None:
        tree.begin_session()
        self._mini_batches = MiniBatches(folder, tree, plans)
        self._events = events
        self._loop = loop
        self._waiting: dict[str, StagedMiniBatch] = {}
        self._wake, self._wake_end = os.pipe()
        for fd in (self._wake, self._wake_end):
            os.set_blocking(fd, False)
        self._stager = Stager(cache, tree.path, wake=self._wake_end, timeout_s=timeout_s, beside=beside)
        loop.add(self._wake, self._on_done)

    def begin(self, assignments: Iterable[Assignment]) -> None:
        """Bring their files here."""
        for assignment in assignments:
            token = assignment.delivery.token
            try:
                mini_batch = self._mini_batches.read(assignment.delivery.message)
            except (ParallelRunError, OSError, StopIteration, ValueError) as error:
                self._stager.fail(token, Failure("INPUT_UNREADABLE", f"The mini-batch message can't be read: {error}"))
            else:
                self._waiting[token] = mini_batch
                self._stager.stage(token, mini_batch.files)

    def end(self, tokens: Iterable[str]) -> None:
        """Their files are not needed any more."""
        for token in tokens:
            if self._waiting.pop(token, None) is not None:
                self._stager.release(token)

    def payload(self, token: str) -> tuple[int, int, bytes]:
        """Kind, number of items and payload of a delivery whose files are here."""
        return self._waiting[token][:3]

    def poll(self) -> None:
        """Begin what had to wait for room, and end what takes too long. For calls a few times a second."""
        self._stager.retry()

    def close(self) -> None:
        """Nothing of it is needed any more."""
        self._stager.close()
        self._loop.remove(self._wake)
        os.close(self._wake)
        os.close(self._wake_end)

    def _has_items(self, token: str) -> bool:
        mini_batch = self._waiting.get(token)
        return mini_batch is not None and len(mini_batch.files) == mini_batch.items

    def _on_done(self) -> None:
        try:
            os.read(self._wake, 1 << 12)
        except BlockingIOError:
            return
        now = time.monotonic()
        with self._events as machine:
            while self._stager.done:
                staged = self._stager.done.popleft()
                if staged.disk_error:
                    machine.disk_failed(staged.disk_error, now)
                else:
                    missing = staged.missing if self._has_items(staged.token) else {}
                    machine.staged(staged.token, staged.elapsed_s, staged.failure, now, staged.files, missing=missing)
