"""A job's failures, grouped by category and message, and the one that a user should look at first."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from parallelrun_core.failure import ErrorCount, JobFailure
from parallelrun_core.masking import Mask
from parallelrun_core.outcome import Failure, Outcome
from parallelrun_core.phases import Phase

_MAX_SAMPLES = 3
_MAX_GROUPS = 1000
_COMMONEST = 5


class _Detail(msgspec.Struct):
    items: int = 0
    files: list[str] = []


@dataclass
class ErrorGroup:
    """Failures that look alike."""

    category: str
    message: str
    traceback: str
    log: str
    """The file below logs/ that has the first of them in full."""
    count: int = 0
    mini_batches: list[int] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    """Of the first mini-batch: its first files, and an ellipsis when there may be more."""


class ErrorGroups:
    """A job's failures by category and first line of the message, and the group of the first one.

    Args:
        mask: hides secrets in messages and tracebacks.
    """

    def __init__(self, mask: Mask | None = None) -> None:
        self.count = 0
        self._mask = mask or Mask({})
        self._by_text: dict[tuple[str, str], ErrorGroup] = {}
        self.first: ErrorGroup | None = None

    def add(self, outcome: Outcome) -> ErrorGroup | None:
        """Count one failed try; returns its group when that is new."""
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
        """Count an init() or shutdown() that failed. It is not a try, and never the `first` error."""
        failure = phase.failure
        if failure is not None:
            if phase.name == "SHUTDOWN":
                failure = msgspec.structs.replace(failure, message=f"shutdown(): {failure.message}")
            self._counted(failure, phase.node, phase.process)

    def _counted(self, failure: Failure, node: str, process: str) -> tuple[ErrorGroup, bool]:
        """The group of a failure, with this one counted, and whether it is new."""
        key = (failure.category, failure.message.partition("\n")[0][:200])
        found = self._by_text.get(key)
        is_new = found is None and len(self._by_text) < _MAX_GROUPS
        if found is None:
            text = self._mask.text
            found = ErrorGroup(
                failure.category, text(failure.message), text(failure.traceback), error_log(node, process)
            )
            if is_new:
                self._by_text[key] = found
        found.count += 1
        self.count += 1
        return found, is_new

    def most_common(self, count: int) -> list[ErrorGroup]:
        return sorted(self._by_text.values(), key=lambda group: -group.count)[:count]


def files_of(detail: str) -> list[str]:
    """The first files of a mini-batch, from the `detail` of a failed try."""
    try:
        found = msgspec.json.decode(detail or "{}", type=_Detail)
    except msgspec.DecodeError:
        return []
    return [*found.files, "…"] if found.files and found.items > len(found.files) else found.files


def error_log(node: str, process: str) -> str:
    """The file below logs/ in which an agent keeps a worker's errors; empty when no worker is to blame."""
    return f"user/error/{node}/{process}.txt" if process else ""


def with_cause(failure: JobFailure, errors: ErrorGroups) -> JobFailure:
    """The same failure with the first error as its cause, and with the most common ones."""
    first = errors.first
    if first is None:
        return failure
    return msgspec.structs.replace(
        failure,
        error_category=first.category,
        first_cause=f"{first.category}: {first.message}",
        traceback=first.traceback,
        sample_mini_batches=first.mini_batches,
        log=first.log,
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
