"""Why the job ended as it did, in words: job_result.txt, job_error.txt and user/error.txt (reference §5, §5.5)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from parallelrun_core.errors import ParallelRunError
from parallelrun_core.figures import counted
from parallelrun_core.folder.decisions import read_decisions
from parallelrun_core.folder.records import JobResult
from parallelrun_core.layout import Logs
from parallelrun_core.spec import JobSpec
from parallelrun_core.untrusted.sanitize import in_one_line, indented, visible
from parallelrun_core.wire.ending import how_completed
from parallelrun_core.wire.error_kinds import place_of
from parallelrun_core.wire.failure import JobFailure
from parallelrun_core.wire.progress import Progress
from parallelrun_core.wire.states import JobState
from parallelrun_master.policy.error_groups import ErrorGroup, ErrorGroups
from parallelrun_master.policy.hints import MIGHT_HAVE_FAILED, SHORT_RETURNS, what_to_do
from parallelrun_master.reports.files import replace_text

_MOST_KINDS = 100
_COMMONEST = 5
_ENDED: dict[JobState, str] = {
    JobState.COMPLETED: "has completed", JobState.FAILED: "has failed", JobState.CANCELED: "was canceled",
}  # fmt: skip


def how_it_ended(result: JobResult) -> str:
    """Return how a job has ended, in words; of one that has completed, also how much of it has failed."""
    completed = result.state is JobState.COMPLETED
    return _ENDED[result.state] + (how_completed(result.progress, result.errors) if completed else "")


def write_job_result(
    logs: Path, result: JobResult, errors: ErrorGroups, spec: JobSpec, advice: Sequence[str] = ()
) -> None:
    """logs/job_result.txt, the file to open first; and logs/job_error.txt, when there is an error.

    Args:
        advice: a section with what would make the job faster.
    """
    progress = result.progress
    counts = lines_of_command(logs, progress) if spec.command else _counted(progress)
    lines = [f"Job {result.job_id} {how_it_ended(result)}.", "", *counts]
    if spec.resume_from:
        lines.append(
            f"Taken over: {progress.resumed:,} finished mini-batches, with their rows, come from job "
            f"{spec.resume_from}; they were not run again."
        )
    if not spec.rank_mini_batch_count:
        lines.append(f"Inputs: {visible(', '.join(spec.data_paths()), lines=False)}.")
        lines += [f"Order of the mini-batches: {_order(result, spec)}."] if result.order else []
    if result.output:
        output = visible(result.output, lines=False)
        lines.append(f"Output: {output}, {result.output_bytes:,} bytes, sha256 {result.output_sha256}.")
    lines += [f"Warning: {in_one_line(warning)}" for warning in result.warnings]
    if progress.items_short and result.failure is None:
        lines.append(f"Note: {SHORT_RETURNS}.")
    if result.failure is not None:
        why = why_it_failed(result.failure)
        lines += ["", *why]
        replace_text(logs / "job_error.txt", "\n".join([lines[0], *why]) + "\n")
    else:
        (logs / "job_error.txt").unlink(missing_ok=True)  # of an earlier end, before the job went on
        if progress.failed and errors.first is not None and (hint := what_to_do(spec, progress, errors.first)):
            lines.append(f"Hint: {hint}.")
        if progress.items_lost:
            lines.append(f"Failed items: {progress.items_lost:,}, each in failed_items.csv.")
        if result.state is JobState.COMPLETED and progress.failed:
            lines.append(f"Hint: {MIGHT_HAVE_FAILED}.")
    common = errors.most_common(_COMMONEST)
    if common and not spec.command:
        lines += ["", "The most common errors:", *(line for group in common for line in _lines_of(group))]
    lines += advice
    lines += ["", "readme.txt says what is in the other files."]
    replace_text(logs / "job_result.txt", "\n".join(lines) + "\n")


def _counted(progress: Progress) -> list[str]:
    return [
        f"Mini-batches: {progress.scheduled:,} scheduled, {progress.done:,} done, {progress.failed:,} failed"
        f"{_undecided(progress.scheduled - progress.decided)}, {counted(progress.retried, 'try', 'tries')} repeated, "
        f"{counted(progress.lost, 'delivery', 'deliveries')} lost with their node.",
        f"Items: {_items(progress)}, {progress.items_done:,} succeeded, {_failed_items(progress)}"
        f"{_undecided(progress.items_found - progress.items_done - progress.items_failed)}.",
        f"Rows: {progress.rows:,}.",
        *_waits(progress),
        *([f"Cost: {progress.cost_text()}."] if progress.cost_text() else []),
    ]


def _undecided(count: int) -> str:
    """Return how many of a job that ended early have neither succeeded nor failed, so that the numbers add up."""
    return f", {count:,} not decided" if count > 0 else ""


def _waits(progress: Progress) -> list[str]:
    """Return a line on the limits that mini-batches have waited for, with the seconds of all of them added up."""
    if not progress.waits_s:
        return []
    percent = progress.waits_percent()
    each = [
        f"{name} {share:.0f} % ({progress.waits_s[name]:,.1f} s of {progress.waits_of_s:,.1f} s)"
        for name, share in percent.items()
    ]
    return [f"Waits for permits, which is no time of run(): {', '.join(each)}."]


def _failed_items(progress: Progress) -> str:
    """Return how many items count as failed, and why they do if nothing was raised or the number is an estimate."""
    short, estimated = progress.items_short, progress.items_estimated
    among = [f"{short:,} only because run() returned no row for them"] if short else []
    among += [f"{estimated:,} of them estimated, since their data could not be read"] if estimated else []
    return f"{progress.items_failed:,} failed" + (f" ({'; '.join(among)})" if among else "")


def _items(progress: Progress) -> str:
    items = progress.items_decided
    if progress.decided < progress.scheduled and progress.items_scheduled <= items:
        return f"{items:,} so far (a table's rows are known once they have been read)"
    return f"{progress.items_found:,} in all"


def _order(result: JobResult, spec: JobSpec) -> str:
    if spec.partition_keys:
        return f"sorted by {', '.join(spec.partition_keys)}"
    if result.order == "sorted":
        return "sorted by path"
    return "as the file system listed them (a folder was too large to sort)"


def why_it_failed(failure: JobFailure) -> list[str]:
    """Why a job has failed, and what to do, line by line."""
    lines = [f"Reason: {failure.code}: {indented(failure.summary)}"]
    lines += [f"First cause: {indented(failure.first_cause)}"] if failure.first_cause else []
    lines += [f"Error category: {failure.error_category}"] if failure.error_category else []
    lines += [f"    {indented(failure.traceback.rstrip())}"] if failure.traceback else []
    if failure.sample_mini_batches:
        lines.append(f"Sample mini-batches: {', '.join(map(str, failure.sample_mini_batches))}")
    lines += [f"Hint: {failure.hint}"] if failure.hint else []
    lines += [f"Open next: {failure.log}"] if failure.log else []
    return lines


def _lines_of(group: ErrorGroup) -> list[str]:
    samples, message = group.mini_batches, in_one_line(group.message.partition("\n")[0])
    where = f" (mini-batch{'es' if len(samples) > 1 else ''} {', '.join(map(str, samples))})" if samples else ""
    lines = [f"{group.count:8,} x {group.category}: {message}{where}"]
    if group.has_several_messages:
        lines.append(f"{'':11}this is the first message of several; all come {_from(group)}")
    if group.files:  # any of them may be the cause
        lines.append(f"{'':11}mini-batch {samples[0]} has the files {visible(', '.join(group.files), lines=False)}")
    lines += [f"{'':11}in full: {group.log}"] if group.log else []
    return lines


def _from(group: ErrorGroup) -> str:
    return f"from {place}" if (place := place_of(group.traceback)) else "in the same way"


def write_user_errors(logs: Path, errors: ErrorGroups) -> None:
    """logs/user/error.txt: what went wrong in the entry script, by kind, the most common first."""
    common = errors.most_common(_MOST_KINDS)
    if not common:
        return
    many = f"{errors.count:,} errors; these are the most common" if errors.count > 1 else "1 error"
    lines = [f"{many}. Those of each process are in full in user/error/<node>/<process>.txt.", ""]
    for group in common:
        lines += [*_lines_of(group), *(f"    {line}" for line in group.traceback.rstrip().split("\n")), ""]
    replace_text(Logs(logs).user_errors, "\n".join(lines))


def lines_of_command(logs: Path, progress: Progress) -> list[str]:
    """Return where the command ran, how long, and where to find what it printed; what was not decided is not known.

    Args:
        logs: those of the job, in its folder.
    """
    lines = []
    try:
        outcome = next(reversed([*read_decisions(logs.parent)]), None)
    except (OSError, ParallelRunError):  # the job has failed for it, and says so
        outcome = None
    if outcome is None:
        lines.append("The command has not ended.")
    elif outcome.process:
        how = "ended with exit code 0" if outcome.status == "done" else "failed"
        where = f"{outcome.node}/{outcome.process}"
        lines.append(f"The command {how} after {outcome.run_s or outcome.elapsed_s:.3f} s on {where}.")
        printed = (Logs(logs).stdout(outcome.node, outcome.process), Logs(logs).stderr(outcome.node, outcome.process))
        lines.append(f"What it printed: {', '.join(str(path.relative_to(logs)) for path in printed)}.")
    if progress.retried or progress.lost:
        lines.append(
            f"It was tried again {counted(progress.retried, 'time')}, and lost with its node "
            f"{counted(progress.lost, 'time')}."
        )
    return lines
