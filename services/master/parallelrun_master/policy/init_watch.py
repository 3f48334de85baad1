"""The watch over init(): when to give up a job whose workers don't get through it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from parallelrun_core.spec import JobSpec
from parallelrun_core.wire.failure import JobFailure
from parallelrun_core.wire.outcome import InitFailure
from parallelrun_master.policy.error_groups import error_log
from parallelrun_master.policy.hints import about_surroundings, for_a_gpu

_ENVIRONMENT_FAILED = "ENVIRONMENT_FAILED"
_CODE_DAMAGED = "CODE_DAMAGED"
_INPUT_UNREADABLE = "INPUT_UNREADABLE"
_INIT_PATIENCE_S = 120.0
_INIT_HINT = (
    "init() and the script's own imports run once in each worker; to reproduce, import the script in plain Python and "
    "call init()"
)


class InitWatch:
    """Decides when a job whose workers don't get through init() is hopeless.

    Soon when no worker gets through; later when too many don't (reference §3.7). Each leader counts from zero: a
    failover costs a few more failures of init().

    Args:
        has_run: some worker got through while an earlier leader led.
    """

    def __init__(self, spec: JobSpec, now: float, *, has_run: bool = False) -> None:
        self._spec = spec
        self._began = now
        self._raised = 0
        self._died = 0
        self._lacking = 0
        self._raised_in_all = 0
        self._has_run = has_run

    def ran(self) -> None:
        """Some worker got through, or has even run a mini-batch."""
        self._raised = self._died = self._lacking = 0
        self._has_run = True

    def prepares(self) -> None:
        """Record that what workers need is on its way to some node."""
        self._lacking = 0

    def failed(self, failure: InitFailure, slots: int, now: float) -> JobFailure | None:
        """Count one; returns the job's failure when it is one too many for this number of slots."""
        category = failure.failure.category
        if category in _AT_ONCE:
            return _AT_ONCE[category](failure)
        if category == "LOAD_TIMEOUT":  # of one node, which says so again and again
            self._lacking += 1
            return _inputs_lacking(failure) if self._lacking > 2 * slots else None
        if category == "INIT_TIMEOUT":
            return None if self._has_run else _all_hang_in_init(failure)
        raised = category in ("INIT_EXCEPTION", "GPU_OUT_OF_MEMORY")
        self._raised += raised
        self._died += not raised
        self._raised_in_all += raised
        if self._raised > 2 * slots or self._died > max(2 * slots, self._spec.lost_leases):
            summary = f"No worker gets through init(): it failed {self._raised or self._died} times in a row."
            return _init_failed(failure, summary, self._spec)
        if self._raised_in_all > 2 * slots and now - self._began > _INIT_PATIENCE_S:
            summary = f"init() failed {self._raised_in_all} times, more than twice for each worker."
            return _init_failed(failure, summary, self._spec)
        return None


def _init_failed(failure: InitFailure, summary: str, spec: JobSpec) -> JobFailure:
    hint = about_surroundings(failure.failure.message, failure.failure.traceback) or _INIT_HINT
    if failure.failure.category == "GPU_OUT_OF_MEMORY":
        hint = for_a_gpu(spec)
    return JobFailure(
        code="INIT_FAILED",
        summary=summary,
        error_category=failure.failure.category,
        first_cause=f"{failure.failure.category}: {failure.failure.message}",
        traceback=failure.failure.traceback,
        log=error_log(failure.node, failure.process),
        hint=hint,
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
    """Another try would not change this."""
    return JobFailure(
        code=_ENVIRONMENT_FAILED,
        summary="The Python environment that the job asks for can't be built.",
        first_cause=failure.failure.message,
        traceback=failure.failure.traceback,
        log=f"sys/node/{failure.node}/environment.txt",
        hint="correct conda_file or pip, or remove them: workers then run in the Python of their node",
    )


def _code_damaged(failure: InitFailure) -> JobFailure:
    """Code that is not the submitter's is never run."""
    return JobFailure(
        code=_CODE_DAMAGED,
        summary="The stored code of the job is not what was submitted, so none of it is run.",
        first_cause=failure.failure.message,
        hint="submit a job with the same code, which stores it anew, then resume this one; see who can write to the "
        "folder `code` of the shared volume",
    )


def _input_unreadable(failure: InitFailure) -> JobFailure:
    """No other node is tried: what is wrong would be so on any of them."""
    return JobFailure(
        code=_INPUT_UNREADABLE,
        summary="An input that each worker needs whole can't be read.",
        first_cause=f"{failure.node}: {failure.failure.message}",
        hint="correct its path, or what the nodes' credentials may do; `parallelrun doctor JOB.yml` tries it",
    )


def _inputs_lacking(failure: InitFailure) -> JobFailure:
    return JobFailure(
        code=_INPUT_UNREADABLE,
        summary="No node gets the inputs that each worker needs whole.",
        error_category=failure.failure.category,
        first_cause=f"{failure.node}: {failure.failure.message}",
        hint="see whether the store answers the nodes, and whether their disks and --stage-bytes have room; a longer "
        "task_overhead_timeout gives them more time",
    )


_AT_ONCE: Final[Mapping[str, Callable[[InitFailure], JobFailure]]] = {
    _ENVIRONMENT_FAILED: _environment_failed,
    _CODE_DAMAGED: _code_damaged,
    _INPUT_UNREADABLE: _input_unreadable,
}
"""What another worker, on whatever node, would not get over."""
