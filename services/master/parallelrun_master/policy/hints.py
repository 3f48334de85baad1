"""Hints: what a user can do about the most common failures."""

from __future__ import annotations

import re
from typing import Final

from parallelrun_core.mltable.formats import step_for
from parallelrun_core.spec import Input, JobSpec
from parallelrun_core.wire.progress import Progress
from parallelrun_master.policy.error_groups import ErrorGroup

MIGHT_HAVE_FAILED = (
    "what failed is within the thresholds of the job; with a lower error_threshold, mini_batch_error_threshold or "
    "allowed_failed_percent, such a job fails instead"
)
SHORT_RETURNS = (
    "run() returned fewer rows than it was given items, which is right for a job that aggregates; the reports count "
    "the others as failed, as Azure ML does: compare Total and Succeeded in "
    "logs/sys/job_report/processed_mini-batches.csv"
)
ONE_FAILS_ALL = (
    "an exception in run() fails every item of its mini-batch: handle errors per item and return rows for the rest"
)
MORE_TIME = "give run() more time (run_invocation_timeout; in documents of Azure ML, timeout of retry_settings)"
SMALLER = ", or use smaller mini-batches (mini_batch_size: {size})"
APART = ", or run its items apart (on_failure: isolate)"
NO_TABLE = (
    "run() is given a list of paths, and seems to expect a DataFrame: say how the files are read, as in "
    "`transformations: [{step}]` in the input, or in an MLTable file; see docs/tables.md"
)
NOT_INSTALLED = (
    "name the package in the job, as in `environment: {pip: [NAME]}` or `environment: {conda_file: FILE}`: without an "
    "environment, workers run in the Python of their node; your own modules must be at the top of `code` or beside the "
    "script, or be imported from there, as in `from folder import module`"
)
RELATIVE_PATH = (
    "a relative path starts from the worker's own working folder, not from the code: use Path(__file__).parent for "
    "files beside the script, inputs for data, and outputs for what the script writes"
)
PARSE_ARGS = (
    "parse_args() ends the process for arguments that it doesn't know, and the engine adds some of its own: use "
    "`args, _ = parser.parse_known_args()`"
)
GPU_TOO_SMALL = (
    "the memory of the GPU has run out: use smaller mini-batches (mini_batch_size), or smaller batches in run(), and "
    "let go of what one run() leaves to the next"
)
GPU_SHARED = "; {count} workers share a GPU: lower workers_per_gpu"

_RELATIVE: Final = re.compile(r"FileNotFoundError: \[Errno 2\] [^:]+: '(?![/~]|\w+:)")
_FRAME_WANTED: Final = re.compile(
    r"AttributeError: 'list' object has no attribute '(apply|assign|astype|columns|drop|dropna|dtypes|fillna|groupby|"
    r"head|iloc|iterrows|itertuples|loc|merge|query|rename|shape|to_csv|to_dict|to_json|to_numpy|to_parquet|values)'"
    r"|TypeError: (list|string) indices must be integers"
)


def what_to_do(spec: JobSpec, progress: Progress, first: ErrorGroup) -> str:
    """Return what a user can do when run() raises, or a command fails."""
    if spec.command and _is_about_a_package(first.message.partition(": ")[2]):
        return NOT_INSTALLED
    if first.category == "GPU_OUT_OF_MEMORY":
        return for_a_gpu(spec)
    can_shrink = not spec.partition_keys and spec.on_failure != "isolate"  # a partition is a mini-batch
    smaller = _smaller(spec) if can_shrink else ""
    if first.category != "RUN_EXCEPTION":
        return MORE_TIME + smaller if first.category == "RUN_TIMEOUT" and not spec.command else ""
    if hint := about_surroundings(first.message, first.traceback):
        return hint
    if _FRAME_WANTED.match(first.message) and not any(_may_be_a_table(each) for _, each in spec.data_inputs()):
        step = next(filter(None, map(step_for, first.files)), "")
        if step:
            return NO_TABLE.format(step=step)
    fails_others = progress.items_lost > progress.failed and spec.on_failure != "isolate"
    return ONE_FAILS_ALL + smaller if fails_others else ""


def _smaller(spec: JobSpec) -> str:
    smaller = SMALLER.format(size="rows:1" if spec.reads_tables else 1)
    return smaller + (APART if spec.mini_batches_in_flight == 1 else "")


def about_surroundings(message: str, traceback: str) -> str:
    """Return what a user can do about an error of a script that works elsewhere; empty: this is none that is known."""
    if _is_about_a_package(message):
        return NOT_INSTALLED
    if message.startswith("SystemExit") and "parse_args" in traceback:
        return PARSE_ARGS
    return RELATIVE_PATH if _RELATIVE.match(message) else ""


def for_a_gpu(spec: JobSpec) -> str:
    """Return what a user can do when the memory of a GPU runs out."""
    shared = spec.workers_per_gpu or 1
    return GPU_TOO_SMALL + (GPU_SHARED.format(count=shared) if shared > 1 else "")


def _may_be_a_table(job_input: Input) -> bool:
    return job_input.type == "mltable" or bool(job_input.transformations)


def _is_about_a_package(message: str) -> bool:
    """Return whether an import has failed."""
    return message.startswith("ModuleNotFoundError")
