"""Lets a job that has ended go on: resume what was never decided, retry what failed.

The plan stays as it was, and so does every success. First the folder says so, durably, then Redis; a request that died
in between is finished by the next one.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from parallelrun_core import telemetry
from parallelrun_core.decisions import read_decisions
from parallelrun_core.errors import Conflict, InvalidInput
from parallelrun_core.jobfolder import JobFolder, Reopening, job_folder
from parallelrun_core.states import JobState
from parallelrun_core.store.registry import Registry

log = telemetry.logger()


class Reopenings:
    """Begins new generations of jobs."""

    def __init__(self, root: Path, registry: Registry, call_leader: Callable[[str], None]) -> None:
        self._root = root
        self._registry = registry
        self._call_leader = call_leader

    def resume(self, job_id: str, *, accept_changed_inputs: bool) -> None:
        """Let a failed or canceled job do what it never decided.

        Raises:
            NotFound: there is no such job.
            Conflict: it has not ended, or it has completed.
        """
        folder = job_folder(self._root, job_id)
        result = folder.result()
        if result is not None and result.state is JobState.COMPLETED:
            raise Conflict(f"Job {job_id} is completed: nothing is left to resume. Failed mini-batches can be retried.")
        self._reopen(folder, retry_failed=False, mini_batches=None, accept_changed_inputs=accept_changed_inputs)

    def retry(self, job_id: str, *, mini_batches: list[int] | None, accept_changed_inputs: bool) -> None:
        """Let a job that has ended try its failed mini-batches again, all or these, and do what it never decided.

        Raises:
            NotFound: there is no such job.
            Conflict: it has not ended, or nothing has failed.
            InvalidInput: one of the mini-batches has not failed.
        """
        folder = job_folder(self._root, job_id)
        folder.record()
        failed = {outcome.mini_batch: outcome.status == "failed" for outcome in read_decisions(folder.path)}
        wrong = [number for number in mini_batches or [] if not failed.get(number)]
        if wrong:
            raise InvalidInput.at("/mini_batches", f"mini-batch {wrong[0]} has not failed")
        result = folder.result()
        if result is not None and result.state is JobState.COMPLETED and not any(failed.values()):
            raise Conflict(f"Job {job_id} is completed, and no mini-batch has failed.")
        self._reopen(folder, retry_failed=True, mini_batches=mini_batches, accept_changed_inputs=accept_changed_inputs)

    def _reopen(
        self, folder: JobFolder, *, retry_failed: bool, mini_batches: list[int] | None, accept_changed_inputs: bool
    ) -> None:
        record = folder.record()
        state = self._registry.state(folder.job_id)
        if state is not None and not state.is_terminal:
            raise Conflict(f"Job {folder.job_id} is {state}: only a job that has ended can be reopened.")
        if folder.result() is not None:
            folder.reopen(
                Reopening(
                    generation=folder.generation() + 1,
                    at=time.time(),
                    retry_failed=retry_failed,
                    mini_batches=mini_batches,
                    accept_changed_inputs=accept_changed_inputs,
                )
            )
        self._registry.reopen(folder.job_id, submitted=record.submitted)
        self._call_leader(folder.job_id)
        log.info("job_reopened", job_id=folder.job_id, generation=folder.generation(), retry_failed=retry_failed)
