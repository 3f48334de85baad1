"""Lets a job that has ended go on: run the mini-batches without a decision, retry the failed ones.

The plan stays as it was, and so does every success. The new generation is recorded first in the folder, durably, then
on Redis; if a request dies in between, the next one finishes it.
"""

from __future__ import annotations

import math
import time
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Final

from parallelrun_api.people.quotas import Quotas
from parallelrun_api.submission.output_claims import check_nobody_else_writes
from parallelrun_api.views.marked import check_has_parts
from parallelrun_core.computes.catalog import ComputeCatalog
from parallelrun_core.computes.selection import computes_in
from parallelrun_core.errors import Conflict, InvalidInput, Unavailable
from parallelrun_core.folder.decisions import read_decisions
from parallelrun_core.folder.job_folder import JobFolder, job_folder
from parallelrun_core.folder.records import JobRecord, JobResult, Reopening
from parallelrun_core.intake.cancelling import cancel
from parallelrun_core.intake.reopening import next_generation, reopen
from parallelrun_core.pipelines.records import read_records
from parallelrun_core.pipelines.standing import can_be_retried, standings
from parallelrun_core.pipelines.turns import unrolled
from parallelrun_core.retention.marks import check_not_deleted
from parallelrun_core.service import telemetry
from parallelrun_core.storage.location import is_url
from parallelrun_core.storage.stores import storage_of
from parallelrun_core.store.connection import Redis
from parallelrun_core.store.registry import Registry
from parallelrun_core.wire.costs import usd_text
from parallelrun_core.wire.states import JobState

log = telemetry.logger()

_RETIRE_S: Final = 15.0
"""Longer than the lease of a node that is lost at the very end, 8 s by default."""
_FOR_GOOD: Final = ("THRESHOLD_CROSSED", "COMMAND_FAILED", "NO_ROWS", "EMPTY_INPUT")
"""Failures caused by what was planned or decided: running the rest doesn't undo them."""


class Reopenings:
    """Begins new generations of jobs."""

    def __init__(self, root: Path, redis: Redis, quotas: Quotas | None = None) -> None:
        self._root = root
        self._quotas = quotas
        self._computes = ComputeCatalog(root)
        self._redis = redis
        self._registry = Registry(redis)

    def resume(self, job_id: str, *, accept_changed_inputs: bool, budget_usd: float | None = None) -> None:
        """Let a failed or canceled job run what has no decision, or have an output that is gone put together again.

        Raises:
            NotFound: there is no such job.
            Unavailable: it has just ended, and is being cleaned up.
            Conflict: it has not ended, it has completed and its output is there, or it would fail again at once.
            QuotaExceeded: its owner has as many jobs as they may have.
        """
        folder = self._reopenable(job_id)
        result = folder.result()
        if result is not None and result.state is JobState.COMPLETED and not _has_lost_output(result):
            raise Conflict(f"Job {job_id} is completed: nothing is left to resume. Failed mini-batches can be retried.")
        if result is not None and result.failure is not None and result.failure.code in _FOR_GOOD:
            raise Conflict(f"Job {job_id} would fail again at once: {result.failure.summary} {_advice(result)}")
        _check_budget(result, budget_usd)
        self._reopen(folder, accept_changed_inputs=accept_changed_inputs, budget_usd=budget_usd)

    def retry(
        self,
        job_id: str,
        *,
        mini_batches: list[int] | None,
        accept_changed_inputs: bool,
        budget_usd: float | None = None,
    ) -> None:
        """Let a job that has ended try again what has failed, and run the mini-batches without a decision.

        These are failed mini-batches and, of others, the items that have failed: of all, or of these mini-batches.

        Raises:
            NotFound: there is no such job.
            Conflict: it has not ended, nothing has failed, or it would write into a version of an asset.
            InvalidInput: one of the mini-batches has not failed.
            QuotaExceeded: its owner has as many jobs as they may have.
        """
        folder = self._reopenable(job_id)
        record = folder.record()
        if record.is_pipeline:
            _check_steps(folder, record, mini_batches)
            items = False
        else:
            items = _check_mini_batches(folder, mini_batches)
            _check_makes_no_assets(folder, record)
        _check_budget(folder.result(), budget_usd)
        self._reopen(
            folder,
            retry_failed=True,
            retry_items=items,
            mini_batches=mini_batches,
            accept_changed_inputs=accept_changed_inputs,
            budget_usd=budget_usd,
        )

    def _reopenable(self, job_id: str) -> JobFolder:
        """The folder of a job with all that is needed to go on.

        Raises:
            NotFound: there is no such job, or it was deleted.
            Conflict: its part files were removed.
        """
        folder = job_folder(self._root, job_id)
        check_not_deleted(folder)
        check_has_parts(folder)
        return folder

    def _reopen(
        self,
        folder: JobFolder,
        *,
        accept_changed_inputs: bool,
        budget_usd: float | None,
        retry_failed: bool = False,
        retry_items: bool = False,
        mini_batches: list[int] | None = None,
    ) -> None:
        from parallelrun_core.store.rq.wake import ask_for_leader  # RQ takes long to import

        record = folder.record()
        if folder.result() is None and folder.has_cancel(folder.generation()):
            cancel(self._redis, folder)  # Redis has forgotten it: its end is recorded first, and those of its steps
        state = self._registry.state(folder.job_id)
        if state is not None and not state.is_terminal:
            raise Conflict(f"Job {folder.job_id} is {state}: only a job that has ended can be reopened.")
        self._check_parent(record)
        self._check_computes(record)
        check_nobody_else_writes(folder, record, self._registry)
        self._wait_until_retired(folder.job_id)
        reopening = Reopening(
            generation=next_generation(folder),
            at=time.time(),
            retry_failed=retry_failed,
            retry_items=retry_items,
            mini_batches=mini_batches,
            accept_changed_inputs=accept_changed_inputs,
            budget_usd=budget_usd,
        )
        with self._counted(record):
            reopen(self._registry, folder, reopening)
        if self._quotas is not None:
            self._quotas.confirm(folder.job_id)
        # Not under the name of the first call: RQ may still be removing its entry.
        ask_for_leader(self._redis, folder.job_id, attempt=f"again-{folder.generation()}")
        log.info("job_reopened", job_id=folder.job_id, generation=folder.generation(), retry_failed=retry_failed)

    def _counted(self, record: JobRecord) -> AbstractContextManager[None]:
        """Let the job count for its owner's quota while it begins anew. Raises QuotaExceeded."""
        if self._quotas is None or record.parent is not None:  # a step counts with its pipeline
            return nullcontext()
        return self._quotas.reserved(record.job_id, record.owner, is_submission=False)

    def _check_parent(self, record: JobRecord) -> None:
        """Make sure that no pipeline around it is at work: that has seen the end of this job, and goes by it.

        Raises:
            Conflict: there is one.
        """
        job_id, parent = record.job_id, record.parent
        while parent is not None:
            folder = JobFolder(self._root, parent.job_id)
            if not folder.has_ended:
                raise Conflict(
                    f"Job {job_id} is the step {parent.step!r} of the pipeline {parent.job_id}, which has not ended: "
                    "wait for it, or cancel it; then resume or retry it as a whole."
                )
            job_id, parent = parent.job_id, folder.record().parent

    def _check_computes(self, record: JobRecord) -> None:
        """Make sure that the computes are there on which the job runs.

        Raises:
            Conflict: one was deleted.
        """
        for name in sorted(computes_in(record.spec)):
            if name not in self._computes:
                raise Conflict(
                    f"Job {record.job_id} runs on compute {name!r}, which was deleted: define it again, or submit a "
                    "new job."
                )

    def _wait_until_retired(self, job_id: str) -> None:
        """Wait until the leader has recorded the end and cleaned up: later, it would clean up the new generation.

        Raises:
            Unavailable: it takes too long, as when agents are away, or all leaders are busy or away.
        """
        until = time.monotonic() + _RETIRE_S
        while self._registry.is_active(job_id):
            if time.monotonic() > until:
                raise Unavailable(
                    f"Job {job_id} has just ended, and is not cleared up yet: its workers are still shutting down, or "
                    "no leader is free. Try again soon."
                )
            time.sleep(0.02)  # there is no event for it


def _check_budget(result: JobResult | None, budget_usd: float | None) -> None:
    """Make sure that a job has something left to spend.

    Raises:
        Conflict: it would end again at once.
    """
    if result is None or result.progress.spent_usd < (budget_usd or result.progress.budget_usd or math.inf):
        return
    spent, budget = usd_text(result.progress.spent_usd), usd_text(budget_usd or result.progress.budget_usd)
    raise Conflict(
        f"Job {result.job_id} has spent {spent}, and would end again at once with a budget of {budget}. Raise it: "
        f"`parallelrun job resume {result.job_id} --budget USD`, what is spent included."
    )


def _check_steps(folder: JobFolder, record: JobRecord, mini_batches: list[int] | None) -> None:
    """Make sure that there is something in a pipeline to be tried again.

    Raises:
        Conflict, InvalidInput: it isn't so.
    """
    if mini_batches:
        raise InvalidInput.at("/mini_batches", "a pipeline has none of its own", "retry the job of that step")
    result = folder.result()
    if result is None or result.state is not JobState.COMPLETED:
        return
    if not (result.progress.failed or result.progress.items_failed):
        raise Conflict(f"Job {folder.job_id} is completed, and nothing has failed in any of its steps.")
    spec = unrolled(record.pipeline_spec(), read_records(folder))
    if not any(can_be_retried(each, spec.steps[name]) for name, each in standings(folder, spec).items()):
        raise Conflict(
            f"Job {folder.job_id} is completed, and the steps in which something has failed have made versions of "
            "assets, which never change. Submit it again: such a step runs anew and makes the next version, others are "
            "reused."
        )


def _check_makes_no_assets(folder: JobFolder, record: JobRecord) -> None:
    """Make sure that what is tried again wouldn't write into a version of an asset.

    Raises:
        Conflict: it would.
    """
    result = folder.result()
    asset_outputs = [name for name, output in record.job_spec().outputs.items() if output.asset is not None]
    if asset_outputs and result is not None and result.state is JobState.COMPLETED:
        raise Conflict(
            f"Job {folder.job_id} is completed, and its output {asset_outputs[0]!r} was to be a version of an asset, "
            f"which never changes. Submit it again, with resume_from: {folder.job_id} if all that it writes are rows: "
            "that runs only what has failed, and makes the next version."
        )


def _check_mini_batches(folder: JobFolder, mini_batches: list[int] | None) -> bool:
    """Make sure that something has failed in each of these mini-batches, or in any; returns whether items have alone.

    Raises:
        Conflict, InvalidInput: it isn't so.
    """
    failed: set[int] = set()
    with_lost: set[int] = set()
    for outcome in read_decisions(folder.path):  # the last one of a mini-batch counts
        (failed.add if outcome.status == "failed" else failed.discard)(outcome.mini_batch)
        (with_lost.add if outcome.status == "done" and outcome.lost else with_lost.discard)(outcome.mini_batch)
    for number in mini_batches or []:
        if number not in failed and number not in with_lost:
            raise InvalidInput.at("/mini_batches", f"mini-batch {number} has not failed")
    result = folder.result()
    if result is not None and result.state is JobState.COMPLETED and not failed and not with_lost:
        raise Conflict(f"Job {folder.job_id} is completed, and nothing has failed in any mini-batch.")
    return bool(with_lost if mini_batches is None else with_lost & set(mini_batches))


def _has_lost_output(result: JobResult) -> bool:
    """Return whether it may be gone. An object is not asked for from here: made again, it only takes its own place."""
    if is_url(result.output):
        return True
    return bool(result.output) and not storage_of(result.output).is_there(result.output)


def _advice(result: JobResult) -> str:
    if result.progress.scheduled == result.progress.empty:
        return "Its inputs are not listed again: submit a new job when they have files."
    new_job = f"submit a new job with resume_from: {result.job_id}, with fixed code or another threshold"
    if not result.progress.failed:
        return f"There is no failed mini-batch to retry: {new_job}."
    return f"`parallelrun job retry {result.job_id}` also tries the failed ones again; or {new_job}."
