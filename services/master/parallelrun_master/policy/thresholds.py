"""Error thresholds: when a job fails because too much of it has failed (reference §1.1, §3.5)."""

from __future__ import annotations

from parallelrun_core.figures import counted
from parallelrun_core.spec import JobSpec
from parallelrun_core.wire.failure import JobFailure
from parallelrun_core.wire.progress import Progress
from parallelrun_master.policy.error_groups import ErrorGroups, with_cause
from parallelrun_master.policy.hints import SHORT_RETURNS, what_to_do


def over_threshold(spec: JobSpec, progress: Progress, errors: ErrorGroups) -> JobFailure | None:
    """The failure of a job in which *more than* a threshold has failed; -1 means no threshold (reference §1.1)."""
    if spec.command and progress.failed:
        hint = what_to_do(spec, progress, errors.first) if errors.first else ""
        return with_cause(JobFailure(code="COMMAND_FAILED", summary="The command failed.", hint=hint), errors)
    summary = ""
    decided_all = progress.listing_done and progress.scheduled > 0
    with_items = progress.scheduled - progress.empty
    if 0 <= spec.error_threshold < progress.items_failed:
        summary = _over_items(spec, progress)
    elif 0 <= spec.mini_batch_error_threshold < progress.failed:
        limit = spec.mini_batch_error_threshold
        summary = (
            f"{counted(progress.failed, 'mini-batch')} failed, more than mini_batch_error_threshold ({limit:,}; "
            "v1: allowed_failed_count)."
        )
    elif decided_all and 100 * progress.failed > spec.allowed_failed_percent * with_items:
        percent, limit_percent = 100 * progress.failed / with_items, spec.allowed_failed_percent
        summary = f"{percent:.3g} % of the mini-batches failed, more than allowed_failed_percent ({limit_percent:g})."
    if not summary:
        return None
    hint = SHORT_RETURNS if errors.first is None else what_to_do(spec, progress, errors.first)
    return with_cause(JobFailure(code="THRESHOLD_CROSSED", summary=summary, hint=hint), errors)


def _over_items(spec: JobSpec, progress: Progress) -> str:
    """Say which items are more than `error_threshold`: those that failed, and those that are only without a row."""
    limit, short = f"error_threshold {spec.error_threshold:,}", progress.items_short
    returned = (
        f"run() returned {counted(progress.rows, 'row')} for {counted(progress.items_done + short, 'item')}, which "
        "Azure counts as failed; set -1 for a job that aggregates"
    )
    if not progress.items_lost:
        return f"{limit}: {returned}."
    about = f", {progress.items_estimated:,} of them estimated" if progress.items_estimated else ""
    summary = f"{counted(progress.items_lost, 'item')} failed{about}"
    if progress.items_lost > spec.error_threshold or not short:
        return f"{summary}, more than error_threshold ({spec.error_threshold:,})."
    return f"{limit}: {summary}, and {returned}."


def empty_input(spec: JobSpec) -> JobFailure:
    """The failure of a job without items."""
    where = ", ".join(spec.data_paths())
    steps = [step for _, each in spec.data_inputs() for step in each.transformations if isinstance(step, dict)]
    options = [each for step in steps for each in step.values() if isinstance(each, dict)]
    extensions = {str(each["file_extension"]) for each in options if each.get("file_extension")}
    files = " ".join(["no file", *sorted(extensions)])
    return JobFailure(code="EMPTY_INPUT", summary=f"There is nothing to process in {where}: {files}, or no row.")


def nothing_returned(spec: JobSpec, progress: Progress, errors: ErrorGroups) -> JobFailure:
    """The failure of an append_row job without a single row, whatever the thresholds say (reference §3.5)."""
    with_items = progress.scheduled - progress.empty
    if not with_items:
        return empty_input(spec)
    if progress.failed == with_items:
        summary = f"No mini-batch item succeeded: all mini-batches failed ({progress.failed:,})."
        hint = what_to_do(spec, progress, errors.first) if errors.first else ""
        return with_cause(JobFailure(code="NO_ROWS", summary=summary, hint=hint), errors)
    summary = "No mini-batch item succeeded: run() returned no row at all."
    hint = (
        "run() must return one row for each item that it processed; for no output, use output_action: summary_only, "
        "for an empty one empty_output: complete"
    )
    return with_cause(JobFailure(code="NO_ROWS", summary=summary, hint=hint), errors)
