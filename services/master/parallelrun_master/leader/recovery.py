"""Recovery at the beginning of a term: what earlier ones have decided, and what agents have finished that Redis has
forgotten."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from parallelrun_core.errors import CorruptLog
from parallelrun_core.figures import counted
from parallelrun_core.folder.costs import budget_usd
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.folder.manifest import Closing, last_closing, read_length
from parallelrun_core.folder.records import JobRecord, Reopening
from parallelrun_core.spec import JobSpec
from parallelrun_core.store.connection import Redis
from parallelrun_core.wire.outcome import LostRows
from parallelrun_master.leader.job_context import JobContext
from parallelrun_master.leadership import Leadership
from parallelrun_master.ledger.job_warnings import JobWarnings
from parallelrun_master.ledger.journals import recover_journals
from parallelrun_master.ledger.ledger import Ledger
from parallelrun_master.policy.error_groups import ErrorGroups
from parallelrun_master.policy.pace import PaceKeeper
from parallelrun_master.reports import Reports

_MOST_NAMED: Final = 500


def recover(
    redis: Redis,
    leadership: Leadership,
    folder: JobFolder,
    record: JobRecord,
    spec: JobSpec,
    *,
    reports: Reports,
    lost: Sequence[LostRows] = (),
) -> JobContext:
    """Read what earlier terms have decided; returns the job, to be continued from there.

    Args:
        spec: the record's.
        lost: rows that are not what was committed: what was decided with them has to be run again.

    Raises:
        FileExistsError: this term has begun before.
        NewerSchema: a newer release has written into the folder.
        CorruptLog: something is damaged without which the job can't continue.
    """
    if not folder.has_ended:
        folder.layout.make_folders()  # durable with the decision log, whose name is synced when it is opened
    queue, reopenings = leadership.queue, folder.reopenings()
    reopening = reopenings[-1] if reopenings else None
    queue.generation = reopening.generation if reopening is not None else 0
    if queue.published_generation() > queue.generation:
        raise CorruptLog(f"{folder.layout.reopening(queue.published_generation())} is missing")
    ledger = _open_ledger(leadership, folder, spec, reports, reopenings, lost=lost)
    job = JobContext(
        redis,
        leadership,
        folder,
        record,
        spec,
        ledger=ledger,
        reports=reports,
        warnings=JobWarnings.open(folder.path, leadership.queue.term, ledger.decided, reports.mask),
        reopening=reopening,
    )
    _tell_of_damage(job, ledger)
    if queue.term > 1 and (ledger.damage or not queue.checkpoint()):  # Redis has forgotten it, or the disk
        recover_journals(job)
    taken_over = record.resumed.mini_batches if record.resumed else 0
    _continue_progress(job, resumed=max(0, taken_over - len(ledger.times_lost)))
    reports.say(f"Term {queue.term} begins.")
    return job


def _open_ledger(
    leadership: Leadership,
    folder: JobFolder,
    spec: JobSpec,
    reports: Reports,
    reopenings: Sequence[Reopening],
    *,
    lost: Sequence[LostRows],
) -> Ledger:
    """Begin this term's account of the job: with what was decided before, but for what is to be tried again."""
    queue = leadership.queue
    ledger = Ledger(
        folder.path, queue, queue.term, reports.tries, ErrorGroups(reports.mask), generation=queue.generation,
        lost=lost, retries_items=any(each.retry_items for each in reopenings),
    )  # fmt: skip
    ledger.progress.budget_usd = budget_usd(spec, reopenings)
    leadership.durable_before = ledger.decided.count
    if (size := spec.size).unit == "rows":
        ledger.decided.typical_items = size.number or 1
    for each in reopenings:  # a retry that was interrupted is still to be done
        if each.retry_failed:
            ledger.reopen(each.generation, each.mini_batches, items=each.retry_items)
    return ledger


def _tell_of_damage(job: JobContext, ledger: Ledger) -> None:
    for damage in ledger.damage:
        job.damaged(f"{damage}: what was recorded there is taken from the journals of the nodes, or run again")
    if ledger.lost:
        job.damaged(
            f"the rows of {counted(len(ledger.lost), 'mini-batch')} were lost; these are run again",
            mini_batches=ledger.lost[:_MOST_NAMED],
        )


def _continue_progress(job: JobContext, *, resumed: int) -> None:
    """Count on from what the last term has shown, where the folder doesn't say it."""
    earlier, progress = job.registry.status(job.job_id).progress, job.ledger.progress
    progress.retried, progress.lost = max(progress.retried, earlier.retried), earlier.lost
    progress.running = earlier.running
    job.pace = PaceKeeper(progress, earlier, job.reopening.at if job.reopening is not None else job.record.submitted)
    progress.resumed = resumed
    job.closing = closing = _closing(job)
    if closing is not None:
        progress.scheduled = closing.mini_batches
        progress.items_scheduled = max(closing.items, progress.items_scheduled)  # of a table, what was read
        progress.published, progress.listing_done = earlier.published, True


def _closing(job: JobContext) -> Closing | None:
    """Return how much there is, once all is listed.

    Raises:
        CorruptLog: the manifest is damaged, and is still needed; or it lacks mini-batches that were given out. To list
            again what is missing could give others, with the same numbers.
    """
    folder, queue = job.folder.path, job.queue
    state = job.state()
    is_to_go_on = state is not None and not state.is_terminal
    try:
        length, closing = read_length(folder)
    except CorruptLog as error:
        closing = last_closing(folder)
        is_needed = closing is None or max(job.ledger.decided.count, queue.checkpoint()) < closing.mini_batches
        if is_needed and is_to_go_on:
            raise
        job.damaged(f"{error}; nothing of it is needed any more")
        return closing
    given_out = max(job.ledger.decided.end, queue.checkpoint())
    if closing is None and length < given_out and is_to_go_on:
        raise CorruptLog(f"{folder}/manifest.* has {length:,} mini-batches, and {given_out:,} were given out")
    return closing
