"""The failures of a job by what they look like, and the one that a user should look at first."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from parallelrun_core.failure import ErrorCount, JobFailure
from parallelrun_core.masking import Mask
from parallelrun_core.outcome import Failure, Outcome
from parallelrun_core.store.news import Phase

_MAX_SAMPLES = 3
_MAX_SIGNATURES = 1000
_COMMONEST = 5


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


def with_cause(failure: JobFailure, errors: Errors) -> JobFailure:
    """The same failure with the first error that a user should look at."""
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
