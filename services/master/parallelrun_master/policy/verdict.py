"""When a job must fail. Pure: counts and times in, a verdict out (architecture: thresholds, stalls, init failures)."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from parallelrun_core.failure import ErrorCount, JobFailure
from parallelrun_core.masking import Mask
from parallelrun_core.outcome import Failure, Outcome
from parallelrun_core.progress import Progress
from parallelrun_core.spec import JobSpec
from parallelrun_core.store.leader_queue import InitFailure, Phase

ENVIRONMENT_FAILED = "ENVIRONMENT_FAILED"
_MAX_SAMPLES = 3
_MAX_SIGNATURES = 1000
_COMMONEST = 5
SHORT_RETURNS = (
    "run() returned fewer rows than it was given items: compare Total and Succeeded in "
    "logs/sys/job_report/processed_mini-batches.csv"
)
_INIT_PATIENCE_S = 120.0
_INIT_HINT = (
    "init() and the script's own imports run once in each worker; a plain Python shows the same: import the script "
    "there, and call init()"
)


ONE_FAILS_ALL = (
    "a run() that raises fails all items of its mini-batch, also those that are fine: catch in run() what one item "
    "raises, and return rows for the others; or have smaller mini-batches, as with mini_batch_size: 1"
)
NOT_INSTALLED = (
    "a package has to be named in the job, as in `environment: {pip: [NAME]}` or `environment: {conda_file: FILE}`: "
    "without one, workers run in the Python of their node; a module of your own has to be below `code`"
)


class _Detail(msgspec.Struct):
    items: int = 0
    files: list[str] = []


@dataclass
class Signature:
    """Failures that look alike."""

    category: str
    message: str
    traceback: str
    log: str
    """Where the first of them is told in full, below logs/."""
    count: int = 0
    mini_batches: list[int] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    """The first mini-batch's: the first of them, and an ellipsis when there may be more."""


class Errors:
    """The failures of a job by what they look like, and the first one.

    Args:
        mask: for what they say.
    """

    def __init__(self, mask: Mask | None = None) -> None:
        self.count = 0
        self._mask = mask or Mask({})
        self._by_text: dict[tuple[str, str], Signature] = {}
        self.first: Signature | None = None

    def add(self, outcome: Outcome) -> Signature | None:
        """Count one failed try; returns its signature when it is new."""
        if outcome.failure is None:
            return None
        found, is_new = self._counted(outcome.failure, outcome.node, outcome.process)
        if found.count == 1:
            found.files = files_of(outcome.detail)
        if len(found.mini_batches) < _MAX_SAMPLES and outcome.mini_batch not in found.mini_batches:
            found.mini_batches.append(outcome.mini_batch)
        self.first = self.first or found
        return found if is_new else None

    def add_phase(self, phase: Phase) -> None:
        """Count an init() or shutdown() that failed: it is no try, and never the cause of one."""
        failure = phase.failure
        if failure is not None:
            if phase.name == "SHUTDOWN":
                failure = msgspec.structs.replace(failure, message=f"shutdown(): {failure.message}")
            self._counted(failure, phase.node, phase.process)

    def _counted(self, failure: Failure, node: str, process: str) -> tuple[Signature, bool]:
        """The signature of a failure, which has one more now, and whether it is new."""
        key = (failure.category, failure.message.partition("\n")[0][:200])
        found = self._by_text.get(key)
        is_new = found is None and len(self._by_text) < _MAX_SIGNATURES
        if found is None:
            text = self._mask.text
            found = Signature(
                failure.category, text(failure.message), text(failure.traceback), error_log(node, process)
            )
            if is_new:
                self._by_text[key] = found
        found.count += 1
        self.count += 1
        return found, is_new

    def most_common(self, count: int) -> list[Signature]:
        return sorted(self._by_text.values(), key=lambda signature: -signature.count)[:count]


def files_of(detail: str) -> list[str]:
    """The first files of a mini-batch, of which a failed try tells in its `detail`."""
    try:
        found = msgspec.json.decode(detail or "{}", type=_Detail)
    except msgspec.DecodeError:
        return []
    return [*found.files, "…"] if found.files and found.items > len(found.files) else found.files


def error_log(node: str, process: str) -> str:
    """The file in which an agent keeps the errors of a worker, below logs/; empty when no worker is to blame."""
    return f"user/error/{node}/{process}.txt" if process else ""


def over_threshold(spec: JobSpec, progress: Progress, errors: Errors) -> JobFailure | None:
    """The failure of a job of which too much has failed: *more than* a threshold, -1 meaning never (reference §1.1)."""
    summary = ""
    decided_all = progress.listing_done and progress.scheduled > 0
    with_items = progress.scheduled - progress.empty
    if 0 <= spec.error_threshold < progress.items_failed:
        summary = f"{progress.items_failed:,} items failed, more than error_threshold ({spec.error_threshold:,})."
    elif 0 <= spec.mini_batch_error_threshold < progress.failed:
        limit = spec.mini_batch_error_threshold
        summary = f"{progress.failed:,} mini-batches failed, more than mini_batch_error_threshold ({limit:,})."
    elif decided_all and 100 * progress.failed > spec.allowed_failed_percent * with_items:
        percent = 100 * progress.failed / with_items
        summary = f"{percent:.3g} % of the mini-batches failed, more than allowed_failed_percent."
    if not summary:
        return None
    hint = SHORT_RETURNS if errors.first is None else what_to_do(progress, errors.first)
    return with_cause(JobFailure(code="THRESHOLD_CROSSED", summary=summary, hint=hint), errors)


def nothing_returned(progress: Progress, errors: Errors) -> JobFailure:
    """An append_row job without one row fails, whatever the thresholds say (reference §3.5)."""
    if progress.failed == progress.scheduled:
        summary = f"No mini-batch item succeeded: all mini-batches failed ({progress.failed:,})."
        hint = what_to_do(progress, errors.first) if errors.first else ""
        return with_cause(JobFailure(code="NO_ROWS", summary=summary, hint=hint), errors)
    summary = "No mini-batch item succeeded: run() returned no row at all."
    hint = "run() must return one row for each item that it processed; for no output, use output_action: summary_only"
    return with_cause(JobFailure(code="NO_ROWS", summary=summary, hint=hint), errors)


def what_to_do(progress: Progress, first: Signature) -> str:
    """What a user can do when run() raises."""
    if first.category != "RUN_EXCEPTION":
        return ""
    if _is_about_a_package(first.message):
        return NOT_INSTALLED
    return ONE_FAILS_ALL if progress.items_failed > progress.failed else ""


def _is_about_a_package(message: str) -> bool:
    """Whether an import has failed."""
    return message.startswith("ModuleNotFoundError")


def with_cause(failure: JobFailure, errors: Errors) -> JobFailure:
    """The same failure with the first error that a user should look at."""
    first = errors.first
    if first is None:
        return failure
    return JobFailure(
        code=failure.code,
        summary=failure.summary,
        error_category=first.category,
        first_cause=f"{first.category}: {first.message}",
        traceback=first.traceback,
        sample_mini_batches=first.mini_batches,
        log=first.log,
        hint=failure.hint,
        errors=[
            ErrorCount(
                category=found.category,
                message=found.message,
                count=found.count,
                sample_mini_batches=found.mini_batches,
                log=found.log,
            )
            for found in errors.most_common(_COMMONEST)
        ],
    )


class InitWatch:
    """Decides when a job whose workers don't get through init() is hopeless.

    At once, when nobody gets through; later, when too many do not (reference §3.7). Each leader counts from the
    beginning: what one more failover costs is a few more failures of init().

    Args:
        has_run: some worker got through while an earlier leader led.
    """

    def __init__(self, spec: JobSpec, now: float, *, has_run: bool = False) -> None:
        self._spec = spec
        self._began = now
        self._raised = 0
        self._died = 0
        self._raised_in_all = 0
        self._has_run = has_run

    def ran(self) -> None:
        """A mini-batch was run: some worker got through."""
        self._raised = self._died = 0
        self._has_run = True

    def failed(self, failure: InitFailure, slots: int, now: float) -> JobFailure | None:
        """Count one; the job's failure when it is one too many for a cluster with so many slots."""
        category = failure.failure.category
        if category == ENVIRONMENT_FAILED:
            return _environment_failed(failure)
        if category == "INIT_TIMEOUT":
            return None if self._has_run else _all_hang_in_init(failure)
        raised = category == "INIT_EXCEPTION"
        self._raised += raised
        self._died += not raised
        self._raised_in_all += raised
        if self._raised > 2 * slots or self._died > max(2 * slots, self._spec.lost_leases):
            summary = f"No worker gets through init(): it failed {self._raised or self._died} times in a row."
            return _init_failed(failure, summary)
        if self._raised_in_all > 2 * slots and now - self._began > _INIT_PATIENCE_S:
            summary = f"init() failed {self._raised_in_all} times, more than twice for each of {slots} workers."
            return _init_failed(failure, summary)
        return None


def _init_failed(failure: InitFailure, summary: str) -> JobFailure:
    return JobFailure(
        code="INIT_FAILED",
        summary=summary,
        error_category=failure.failure.category,
        first_cause=f"{failure.failure.category}: {failure.failure.message}",
        traceback=failure.failure.traceback,
        log=error_log(failure.node, failure.process),
        hint=NOT_INSTALLED if _is_about_a_package(failure.failure.message) else _INIT_HINT,
    )


def _all_hang_in_init(failure: InitFailure) -> JobFailure:
    return JobFailure(
        code="NO_PROGRESS",
        summary="No progress: all workers hang in init().",
        error_category=failure.failure.category,
        first_cause=f"{failure.failure.category}: {failure.failure.message}",
        log=f"user/stderr/{failure.node}/{failure.process}.stderr.txt",
        hint="the log shows where; a longer run_invocation_timeout gives init() more time, too",
    )


def _environment_failed(failure: InitFailure) -> JobFailure:
    """Nothing that is tried again would change this."""
    return JobFailure(
        code=ENVIRONMENT_FAILED,
        summary="The Python environment that the job asks for can't be made.",
        first_cause=failure.failure.message,
        traceback=failure.failure.traceback,
        log=f"sys/node/{failure.node}/environment.txt",
        hint="mend conda_file or pip, or take them out: the workers then run in the Python of their node",
    )


class StallWatch:
    """Decides when a job that makes no progress has waited long enough."""

    def __init__(self, spec: JobSpec, now: float) -> None:
        self._first_s = spec.first_task_creation_timeout
        self._update_s = spec.progress_update_timeout or 3 * spec.run_invocation_timeout * spec.run_max_try + 600
        self._spec = spec
        self._last = now
        self._moved = False

    def moved(self, now: float) -> None:
        """Something was scheduled, tried or decided."""
        self._last = now

    def first_mini_batch(self) -> None:
        self._moved = True

    def stalled(self, now: float, *, nodes: int, running: int) -> JobFailure | None:
        """The failure of a job that has stood still for too long, with what it seems to wait for."""
        limit = self._update_s if self._moved else self._first_s
        if now - self._last <= limit:
            return None
        wanted = self._spec.instance_count
        if not nodes:
            waits = "no node is alive"
        elif wanted and nodes < wanted:
            waits = f"have {nodes} of {wanted} nodes"
        else:
            waits = f"{nodes} nodes are alive, {running} mini-batches are with a worker"
        name = "progress_update_timeout" if self._moved else "first_task_creation_timeout"
        hint = ""
        if nodes and not running:
            hint = "no worker has asked for work: if init() hangs, the workers' stderr in logs/user/stderr shows where"
        return JobFailure(code="NO_PROGRESS", summary=f"No progress for {limit:g} s ({name}): {waits}.", hint=hint)
