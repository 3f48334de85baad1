"""Builds the outcome of a try from a worker's answer, or from the way it died: out of memory (OOM), by a signal, after
a timeout. How many tries a failure costs is decided here; which mini-batches a death is charged to, in `worker.py`.
Pure, no I/O."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from typing import Final

import msgspec

from parallelrun_agent.policy.in_flight import Assignment
from parallelrun_agent.policy.worker import Exit, KillReason, Worker
from parallelrun_core.errors import ParallelRunError
from parallelrun_core.spec import JobSpec
from parallelrun_core.spec.retry_policy import MiniBatchRetryPolicy
from parallelrun_core.wire import message
from parallelrun_core.wire.outcome import ErrorCategory, Failure, Outcome, Status, Use

PROTOCOL_VIOLATED = (
    "The worker was ended because its answers can't be trusted: something in the process, the entry script or a "
    "library, wrote to a file descriptor that it hadn't opened, or closed it."
)
_ROWS_MISSING = (
    "The rows are not in the worker's part file: something in the process, the entry script or a library, closed a "
    "file descriptor that it hadn't opened, or cut the file."
)
_MOST_FILES = 3
_NO_WAITS: Final[dict[str, float]] = {}


class WorkerAnswer(msgspec.Struct, frozen=True, gc=False):
    """A worker's answer for one mini-batch, or what stands for it after its death.

    The fields of `frames.RESULT_FIELDS`, in their order; then what was used, and the failure.
    """

    mini_batch: int
    offset: int = 0
    length: int = 0
    crc: int = 0
    items: int = 0
    """Items that the worker has counted in the mini-batch."""
    rows: int = 0
    line_breaks: int = 0
    shortened: int = 0
    run_s: float = 0.0
    process_s: float = 0.0
    use: Use = Use()
    failure: Failure | None = None


@dataclass(frozen=True, slots=True)
class OutcomeBuilder:
    """Builds the outcomes of one job on one node."""

    node: str
    generation: int
    retries: MiniBatchRetryPolicy

    def build(self, assignment: Assignment, worker: Worker | None, answer: WorkerAnswer, elapsed_s: float) -> Outcome:
        """The outcome of a try: done, failed for good, or to be tried again. Some end before a worker has them.

        It counts as one try; Redis adds that to the tries of the mini-batch's next delivery.
        """
        delivery = assignment.delivery
        tries = delivery.tries + 1
        status: Status = "done"
        run_s, load_s = answer.run_s, assignment.load_s + assignment.waited_s
        items = answer.items if answer.items > assignment.items else assignment.items
        if answer.failure is not None:
            status = self._status(tries, answer.failure)
            items = items or items_of(delivery.message)
            if worker is None:  # its files could not be brought here
                run_s, load_s = 0.0, elapsed_s
            elif assignment.loads and not assignment.loaded_at:  # its data could not be read: run() was never called
                run_s, load_s = 0.0, load_s + run_s
        lost = assignment.lost if answer.failure is None else ()
        has_failed = bool(lost) or answer.failure is not None
        detail = detail_of(delivery.mini_batch, delivery.message) if has_failed else ""
        # In the order of the fields: so many names in one call would take three times as long.
        return Outcome(
            delivery.mini_batch,
            self.generation,
            status,
            delivery.token,
            tries,
            self.node,
            worker.process if worker else "",
            worker.part_name if worker and answer.length else "",
            answer.offset,
            answer.length,
            answer.crc,
            items,
            answer.rows,
            assignment.handed_over,
            elapsed_s,
            run_s,
            answer.process_s,
            answer.failure,
            load_s,
            answer.line_breaks,
            detail,
            answer.shortened,
            answer.use,
            assignment.warnings,
            (),
            lost,
            assignment.waits or _NO_WAITS,
        )

    def without_rows(self, outcome: Outcome) -> Outcome:
        """The outcome of a try whose rows are not where its worker said."""
        return self.failed(outcome, Failure("EXITED", _ROWS_MISSING))

    def failed(self, outcome: Outcome, failure: Failure) -> Outcome:
        """The outcome of a try whose run() has succeeded, for which that can't be stored."""
        status = self._status(outcome.tries, failure)
        return msgspec.structs.replace(
            outcome, status=status, failure=failure, part="", offset=0, length=0, crc=0, rows=0, lost=()
        )

    def _status(self, tries: int, failure: Failure) -> Status:
        return "retry" if self.retries.allows_another(tries, failure.category) else "failed"


def cause_of_death(end: Exit, *, reason: KillReason, spec: JobSpec) -> Failure:
    """Why a worker ended during run(). `reason`: why we ended it, if we did."""
    category: ErrorCategory
    if reason == "run_timeout":
        name = "its timeout" if spec.command else "run_invocation_timeout"
        message = f"{what_runs(spec)} took longer than {name} ({spec.run_invocation_timeout:g} s)."
        category = "RUN_TIMEOUT"
    elif reason == "load_timeout":
        limit = f"task_overhead_timeout ({spec.task_overhead_timeout:g} s)"
        category, message = "LOAD_TIMEOUT", f"Reading the data of the mini-batch took longer than {limit}."
    elif reason == "protocol_violated":
        category, message = "EXITED", PROTOCOL_VIOLATED
    elif end.oom_killed:
        category = "OOM_KILLED"
        message = f"The kernel ended the worker because memory ran out.{_peak(end.peak_bytes)}"
    elif end.code < 0:
        name = _signal_name(-end.code)
        category, message = (
            "SIGNAL",
            f"The worker was ended by signal {-end.code} ({name}) during {what_runs(spec).lower()}.",
        )
        if -end.code == signal.SIGKILL:
            message += " Another process sent it, or the kernel ended the worker because memory ran out."
            message += _peak(end.peak_bytes)
    else:
        category, message = "EXITED", f"The worker exited with code {end.code} during {what_runs(spec).lower()}."
    return Failure(category, message)


def what_runs(spec: JobSpec) -> str:
    """Return the name of what a worker runs for a mini-batch, to begin a sentence."""
    return "The command" if spec.command else "run()"


def _peak(peak_bytes: int) -> str:
    return f" It had {peak_bytes / (1 << 20):,.0f} MiB at its peak." if peak_bytes else ""


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "unknown"


def detail_of(mini_batch: int, raw: bytes) -> str:
    """JSON with the first files of a mini-batch and the values of its partition keys; empty when it can't be read."""
    try:
        decoded = message.decode(raw)
        if decoded.kind == message.REFERENCE:  # a long list, which is in the manifest
            return ""
        paths = message.files_of(decoded)
        keys = message.described_of(decoded).keys if message.is_described(decoded) else []
    except ParallelRunError:
        return ""
    files = [path.decode("utf-8", "backslashreplace") for path in dict.fromkeys(paths)][:_MOST_FILES]
    described = {"id": mini_batch, "items": decoded.items, "files": files, **({"keys": keys} if keys else {})}
    return msgspec.json.encode(described).decode()


def items_of(raw: bytes) -> int:
    """The number of items that a message says its mini-batch has; 0: nobody has counted them, as of most tables."""
    try:
        return message.decode(raw).items
    except ParallelRunError:
        return 0
