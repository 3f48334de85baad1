"""The check that a new job may take over what an earlier one has finished: `resume_from` (reference §1.4).

All settings must be the same in both jobs, so that a field that is new here mixes no rows. Those may differ that
determine neither the items of a mini-batch nor the format of rows in part files: the purpose is to run the rest with
fixed code, longer timeouts, more nodes.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from parallelrun_api.people.person import CURRENT
from parallelrun_api.views.marked import check_has_parts
from parallelrun_core.errors import Conflict, InvalidInput, NotFound, Problem
from parallelrun_core.folder.job_folder import JobFolder, job_folder
from parallelrun_core.folder.records import JobRecord
from parallelrun_core.mltable.input_plan import OBJECT, InputPlan, load_plans
from parallelrun_core.mltable.plan import plan_inputs
from parallelrun_core.retention.marks import check_not_deleted
from parallelrun_core.spec import Input, JobSpec
from parallelrun_core.spec.notify import Notified
from parallelrun_core.storage.location import is_url
from parallelrun_core.storage.path_rule import PathRule
from parallelrun_core.wire.row_formats import row_format, row_formats

_POINTER: Final = "/resume_from"
_MOST_CHARACTERS: Final = 200
MAY_DIFFER: Final = frozenset({
    "name", "description", "tags", *Notified.model_fields, "resume_from",
    "code", "additional_includes", "command", "entry_script", "program_arguments", "environment_variables", "secrets",
    "environment",
    "outputs", "output", "append_row_objects", "empty_output",
    "compute", "instance_count", "max_concurrency_per_instance", "priority", "workers_per_gpu", "gpus_per_worker",
    "mini_batches_in_flight", "in_flight", "rate_limits", "budget", "speculative_execution", "look_ahead", "nice",
    "run_invocation_timeout", "first_task_creation_timeout", "progress_update_timeout", "task_overhead_timeout",
    "run_max_try", "on_failure", "fail_fast", "lost_leases", "error_threshold", "mini_batch_error_threshold",
    "allowed_failed_percent",
    "logging_level", "resource_monitor_interval", "profiling_module", "copy_logs_to_parent", "metrics_name_prefix",
    "push_metrics_to_parent",
})  # fmt: skip
"""Fields on which the rows that are there don't depend."""
BY_RULES: Final = frozenset({
    "inputs", "input_data", "mini_batch_size", "mini_batch_format", "string_dtype", "append_row_file_name",
    "append_row_to", "append_row_columns",
})  # fmt: skip
"""Fields that may be written in several ways, or don't matter to each job; so it is with the options of formats of
rows."""
INPUT_MAY_DIFFER: Final = frozenset({"asset", "model"})
"""Fields of an input on which its mini-batches don't depend."""
INPUT_BY_PLAN: Final = frozenset({"type", "mode", "transformations", "hidden_files", "litter_files", "on_mismatch"})
"""Fields of an input that may be written in several ways: its plan has what they come to."""
PLAN_MAY_DIFFER: Final = frozenset({
    "name", "path", "is_copied", "is_staged", "hidden_files", "litter_files", "keys", "mini_batch_format",
    "string_dtype", "is_shuffled", "sample", "first_with_text", "libraries", "rows_wanted", "tail", "keeping",
})  # fmt: skip
"""Fields of a plan that are compared by themselves, or follow from others."""
_PLACES: Final = ("root", "sources", "left_out")
"""Fields of a plan that differ wherever the path does."""


def earlier_job(root: Path, spec: JobSpec, rule: PathRule | None = None) -> JobFolder:
    """The job that this one names as `resume_from`.

    Raises:
        InvalidInput: there is no such job, or it is a pipeline; or settings differ that must not, a problem for each,
            of an input for the first.
        Conflict: it has not ended, or its rows have been removed.
        CorruptLog: its plan can't be read.
    """
    folder, record = _named(root, spec.resume_from)
    if record.is_pipeline:
        message, hint = f"job {folder.job_id} is a pipeline", "name the job of one of its steps; `job show` lists them"
        raise InvalidInput.at(_POINTER, message, hint)
    _check_has_ended(folder)
    check_has_parts(folder)
    problems = tuple(_differences(folder, record.job_spec(), spec, rule))
    if problems:
        raise InvalidInput(problems=problems)
    return folder


def check_earlier_pipeline(root: Path, job_id: str) -> None:
    """Make sure that there is a pipeline to take finished steps over from. Which these are is found out as each begins:
    by what they are made of, as with any step that is equal to one which has completed.

    Raises:
        InvalidInput: there is no such pipeline.
        Conflict: it has not ended.
    """
    folder, record = _named(root, job_id)
    if not record.is_pipeline:
        message, hint = f"job {folder.job_id} is no pipeline", "leave it out: equal steps are reused in any case"
        raise InvalidInput.at(_POINTER, message, hint)
    _check_has_ended(folder)


def _named(root: Path, job_id: str) -> tuple[JobFolder, JobRecord]:
    try:
        folder = job_folder(root, job_id)
        record = folder.record()
        if not CURRENT.get().may_see(record.owner):
            raise NotFound
    except NotFound as error:
        hint = "the id of an earlier job of this server; `parallelrun run` takes over from a folder: --resume-from DIR"
        raise InvalidInput.at(_POINTER, f"there is no job {job_id!r} here", hint) from error
    try:
        check_not_deleted(folder)
    except NotFound as error:
        raise InvalidInput.at(_POINTER, str(error)) from error
    return folder, record


def _check_has_ended(folder: JobFolder) -> None:
    if folder.result() is None:
        problem = Problem(
            pointer=_POINTER,
            message=f"job {folder.job_id} has not ended",
            hint=f"wait for its end, or cancel it: parallelrun job cancel {folder.job_id}",
        )
        raise Conflict(problems=(problem,))


def _differences(earlier: JobFolder, old: JobSpec, new: JobSpec, rule: PathRule | None) -> Iterator[Problem]:
    where = f"job {earlier.job_id}"
    yield from _input_differences(earlier, old, new, where, rule)
    compared_elsewhere = MAY_DIFFER.union(BY_RULES, *(each.options for each in row_formats().values()))
    for field in JobSpec.model_fields:
        if field not in compared_elsewhere and getattr(old, field) != getattr(new, field):
            yield _differs(f"/{field}", where, getattr(old, field), getattr(new, field))
    if old.size != new.size:
        yield _differs("/mini_batch_size", where, old.mini_batch_size, new.mini_batch_size)
    if old.writes_rows and new.writes_rows:
        yield from _row_differences(earlier, old, new, where)


def _input_differences(
    earlier: JobFolder, old: JobSpec, new: JobSpec, where: str, rule: PathRule | None
) -> Iterator[Problem]:
    before, now = old.data_inputs(), new.data_inputs()
    if len(before) != len(now):
        yield _differs("/input_data", where, [name for name, _ in before], [name for name, _ in now])
        return
    plans = load_plans(earlier.path)  # as they were when it began: an MLTable file may have changed since
    frozen: list[InputPlan | None] = [*plans] if plans else [None] * len(before)
    yield from _table_differences([*plans] if plans else [], new, where)
    plans_now = {plan.name: plan for plan in plan_inputs(new, rule, fetches=False)}
    for (_, old_input), plan, (name, new_input) in zip(before, frozen, now, strict=True):
        planned = plans_now.get(name)
        pointer = f"/inputs/{name}"
        for field in Input.model_fields:
            was, is_now = getattr(old_input, field), getattr(new_input, field)
            if field not in INPUT_MAY_DIFFER | INPUT_BY_PLAN and was != is_now:
                yield _differs(f"{pointer}/{field}", where, was, is_now)
        if _is_copied(old_input) != _is_copied(new_input):
            yield _differs(f"{pointer}/mode", where, old_input.mode, new_input.mode)
        if plan is not None and planned is not None:
            ignored = PLAN_MAY_DIFFER if old_input.path == new_input.path else PLAN_MAY_DIFFER.union(_PLACES)
            yield from _plan_differences(plan, planned, ignored, pointer, where)


def _plan_differences(
    plan: InputPlan, planned: InputPlan, ignored: frozenset[str], pointer: str, where: str
) -> Iterator[Problem]:
    for field in ("hidden_files", "litter_files"):
        was, is_now = getattr(plan, field), getattr(planned, field)
        if was not in ("", is_now):
            yield _differs(f"{pointer}/{field}", where, was, is_now)
    if _essence(plan, ignored) != _essence(planned, ignored):
        message = f"its type, transformations or MLTable file are not the same as in {where}"
        yield Problem(pointer=pointer, message=message, hint="leave resume_from out to run all of it")


def _table_differences(plans: list[InputPlan], new: JobSpec, where: str) -> Iterator[Problem]:
    """Workers read tables as the plans say, which the new job takes over."""
    for field, value in (("mini_batch_format", new.mini_batch_format), ("string_dtype", new.string_dtype or OBJECT)):
        planned = next((getattr(plan, field) for plan in plans if plan.is_table), value)
        if planned != value:
            yield _differs(f"/{field}", where, planned, value)


def _is_copied(job_input: Input) -> bool:
    return job_input.mode in ("download", "eval_download")


def _essence(plan: InputPlan, ignored: frozenset[str]) -> dict[str, object]:
    """Return what the rows of a mini-batch depend on, without what was drawn or looked up when the job began."""
    is_found_late = is_url(plan.path) or (plan.read is not None and plan.read.finds_root)
    looked_up = {"root": ""} if is_found_late else {}
    fields = {name: getattr(plan, name) for name in plan.__struct_fields__ if name not in ignored}
    read = plan.read.as_written() if plan.read is not None else None
    return {**fields, **looked_up, "read": read, "steps": [step.as_written() for step in plan.steps]}


def _row_differences(earlier: JobFolder, old: JobSpec, new: JobSpec, where: str) -> Iterator[Problem]:
    """Rows in part files can't be written again in another format."""
    files = earlier.output_file(old), earlier.output_file(new)
    before, now = map(row_format, files)
    if before != now:
        pointer = "/append_row_to" if new.append_row_to else "/append_row_file_name"
        yield _differs(pointer, where, *map(posixpath.basename, files))
        return
    for field in row_formats()[now].options:
        if getattr(old, field) != getattr(new, field):
            yield _differs(f"/{field}", where, getattr(old, field), getattr(new, field))
    has_columns = any(path.name == earlier.layout.schema("returned").name for path in earlier.layout.schemas)
    before, now = old.append_row_columns, new.append_row_columns
    if has_columns and (before == "name") != (now == "name"):  # its rows have columns that no header names
        yield _differs("/append_row_columns", where, before or "position", now or "position")


def _differs(pointer: str, where: str, old: object, new: object) -> Problem:
    message = f"it is {_shown(new)} here but {_shown(old)} in {where}, so that job's work cannot be reused"
    return Problem(pointer=pointer, message=message, hint="leave resume_from out to run all of it")


def _shown(value: object) -> str:
    plain = [*value] if isinstance(value, tuple) else value
    text = "not set" if plain is None else repr(plain)
    return text if len(text) <= _MOST_CHARACTERS else text[:_MOST_CHARACTERS] + "…"
