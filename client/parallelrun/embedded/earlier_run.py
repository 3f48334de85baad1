"""The job of an earlier `parallelrun run`, for another run that takes over from it."""

from __future__ import annotations

import shutil
import time
from contextlib import suppress
from pathlib import Path

from parallelrun.background.lock import is_locked
from parallelrun.embedded.run_folder import WORKING_DATA, is_handed_over
from parallelrun.embedded.services import ClusterLayout
from parallelrun_core.durable_files import link_or_copy
from parallelrun_core.errors import CorruptLog, InvalidInput
from parallelrun_core.folder.decisions import read_decisions
from parallelrun_core.folder.job_folder import JobFolder, recorded_jobs
from parallelrun_core.folder.records import JobResult
from parallelrun_core.layout import JOURNALS, LOGS, OUTPUTS, finished_steps, jobs_of
from parallelrun_core.pipelines.standing import standings
from parallelrun_core.wire.progress import Progress
from parallelrun_core.wire.states import JobState, StepState

_NOT_NEEDED = (LOGS, OUTPUTS, JOURNALS)


def job_of(folder: Path) -> JobFolder:
    """The job of the run whose output folder this is.

    Raises:
        InvalidInput: its working data is missing, or still in use.
    """
    if is_locked(folder / WORKING_DATA / "lock"):
        raise InvalidInput.at("--resume-from", f"the run in {folder} has not ended", "wait until it ends, or stop it")
    job = _job_in(folder)
    if job is None:
        hint = "it is kept when a job has failed, or was canceled after some of it was done, and always with --keep"
        raise InvalidInput.at("--resume-from", f"{folder} holds no working data of a run", hint)
    return job


def check_nothing_is_lost(folder: Path) -> None:
    """Check that a new run into this folder would not discard what exists nowhere else.

    That is the finished part of a job that did not complete, or outputs that could not be handed over.

    Raises:
        InvalidInput: it would.
    """
    job = _job_in(folder)
    if job is None or is_locked(folder / WORKING_DATA / "lock"):  # a run in progress is reported by `RunFolder`
        return
    result = job.result()
    if result is not None and result.state is JobState.COMPLETED:
        _check_handed_over(job)
        return
    done = _finished(job)
    if done:
        nouns = ("step", "steps") if _is_pipeline(job) else ("mini-batch", "mini-batches")
        raise InvalidInput.at(
            "--output",
            f"{folder} holds {done:,} {nouns[done > 1]} that an earlier run has finished",
            f"run only the rest, into another folder, with --resume-from {folder}, or start over with --overwrite",
        )


def _check_handed_over(job: JobFolder) -> None:
    if is_handed_over(job.root.parent):
        return
    if _is_pipeline(job):
        remains = f"{jobs_of(job.root)} holds outputs of steps"
    elif job.outputs.is_dir() and any(job.outputs.iterdir()):
        remains = f"{job.outputs} holds outputs"
    else:
        return
    hint = "move them to where you want them, or start over with --overwrite"
    raise InvalidInput.at("--output", f"{remains} that an earlier run could not hand over", hint)


def _job_in(folder: Path) -> JobFolder | None:
    """The job whose working data is below a run's folder; next to it may be the job that it took over from, and the
    jobs of its steps."""
    root = ClusterLayout(home=folder.absolute() / WORKING_DATA / "cluster").root
    submitted = (job for job in recorded_jobs(root) if not _is_step(job))
    return max(submitted, key=lambda job: job.job_id, default=None)


def _is_step(job: JobFolder) -> bool:
    with suppress(CorruptLog):  # all else of it may still be whole, and is not to be discarded
        return job.record().parent is not None
    return False


def _is_pipeline(job: JobFolder) -> bool:
    with suppress(CorruptLog):
        return job.record().is_pipeline
    return False


def has_finished_work(job: JobFolder) -> bool:
    """Return whether some of its mini-batches or steps are done, which another run could take over."""
    return _finished(job) > 0


def _finished(job: JobFolder) -> int:
    """Return how many of its mini-batches are done; of a pipeline, how many of its steps."""
    if _is_pipeline(job):
        by_step = standings(job, job.record().pipeline_spec())
        return sum(standing.state is StepState.COMPLETED for standing in by_step.values())
    return sum(outcome.status == "done" for outcome in read_decisions(job.path))


def copy_all_into(job: JobFolder, root: Path) -> None:
    """Copy the jobs of a pipeline and of its steps into a cluster with this root folder, as jobs that have ended.

    What steps have made is there then, for equal ones of another pipeline to reuse.
    """
    for each in recorded_jobs(job.root):
        _copy_into(each, root, left_out=(LOGS, JOURNALS))
    if finished_steps(job.root).is_dir():
        shutil.copytree(finished_steps(job.root), finished_steps(root), dirs_exist_ok=True)


def copy_into(job: JobFolder, root: Path) -> None:
    """Copy the job into a cluster with this root folder, as a job that has ended.

    A run that was killed could not record the end of its job. Nothing works for it any more, so it counts as canceled.
    """
    _copy_into(job, root, left_out=_NOT_NEEDED)


def _copy_into(job: JobFolder, root: Path, *, left_out: tuple[str, ...]) -> None:
    def leave_out(folder: str, names: list[str]) -> list[str]:
        return [name for name in names if name in left_out] if Path(folder) == job.path else []

    temporary = JobFolder(root, f".bringing-{job.job_id}")  # a master would resume a job without a result
    shutil.copytree(job.path, temporary.path, copy_function=link_or_copy, ignore=leave_out, symlinks=True)
    if not temporary.has_ended:
        canceled = JobState.CANCELED
        temporary.conclude(
            JobResult(job_id=job.job_id, state=canceled, started=None, ended=time.time(), progress=Progress())
        )
    temporary.path.rename(JobFolder(root, job.job_id).path)
