"""A job's failures, grouped by kind, and the one that a user should see first."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import cast

import msgspec

from parallelrun_core.untrusted.sanitize import visible
from parallelrun_core.wire.error_kinds import Kind, exception_of, kind_of, normalized, short_place
from parallelrun_core.wire.failure import ErrorCount, JobFailure
from parallelrun_core.wire.masking import Mask
from parallelrun_core.wire.outcome import ErrorCategory, Failure, Outcome, Phase

_MAX_SAMPLES = 3
_MAX_GROUPS = 1000
_COMMONEST = 5


class _Detail(msgspec.Struct):
    items: int = 0
    files: list[str] = []


@dataclass
class ErrorGroup:
    category: str
    message: str
    """The message of the first error of the group; the traceback is that error's, too."""
    traceback: str
    log: str
    """The file below logs/ that has the first of them in full."""
    has_several_messages: bool = False
    count: int = 0
    mini_batches: list[int] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    """The first files of the first mini-batch, and an ellipsis when there may be more."""
    mini_batches_lost: int = 0
    """Mini-batches that have failed with it for good."""
    items_lost: int = 0

    def in_numbers(self) -> ErrorCount:
        """Return it as a job's result has it."""
        failure = Failure(cast(ErrorCategory, self.category), self.message, self.traceback)
        return ErrorCount(
            category=self.category,
            message=normalized(self.message) if self.has_several_messages else self.message,
            count=self.count,
            sample_mini_batches=self.mini_batches,
            log=self.log,
            exception=exception_of(failure),
            place=short_place(self.traceback),
            mini_batches=self.mini_batches_lost,
            items=self.items_lost,
        )


class ErrorGroups:
    """A job's failures by kind, and the group of the first one.

    Args:
        mask: hides secrets in messages and tracebacks.
    """

    def __init__(self, mask: Mask | None = None) -> None:
        self.count = 0
        self.mask = mask or Mask({})
        self._by_kind: dict[Kind, ErrorGroup] = {}
        self.first: ErrorGroup | None = None
        self._lost: dict[int, list[tuple[ErrorGroup, int]]] = {}
        """The groups of each mini-batch in which something has failed for good, each with the items."""

    def add(self, outcome: Outcome) -> ErrorGroup | None:
        """Count one failed try, or the items of one that have failed; returns a group that is new."""
        if outcome.status != "retry":
            self.take_out(outcome.mini_batch)
        if outcome.lost:
            groups = [self._add(outcome, each.failure, each.items) for each in outcome.lost]
            return next((group for group, is_new in groups if is_new), None)
        if outcome.failure is None:
            return None
        group, is_new = self._add(outcome, outcome.failure, outcome.items)
        return group if is_new else None

    def _add(self, outcome: Outcome, failure: Failure, items: int) -> tuple[ErrorGroup, bool]:
        group, is_new = self._counted(kind_of(failure), failure, outcome.node, outcome.process)
        if group.count == 1:
            group.files = files_of(outcome.detail)
        if len(group.mini_batches) < _MAX_SAMPLES and outcome.mini_batch not in group.mini_batches:
            group.mini_batches.append(outcome.mini_batch)
        self.first = self.first or group
        if outcome.status != "retry":
            self._lost.setdefault(outcome.mini_batch, []).append((group, items))
            group.mini_batches_lost += 1
            group.items_lost += items
        return group, is_new

    def take_out(self, mini_batch: int) -> None:
        """Take a mini-batch out of what has failed for good: it is tried once more, or has succeeded since."""
        for group, items in self._lost.pop(mini_batch, ()):
            group.mini_batches_lost -= 1
            group.items_lost -= items

    def add_phase(self, phase: Phase) -> None:
        """Count an init() or shutdown() that failed. It is not a try, and never the `first` error."""
        failure = phase.failure
        if failure is not None:
            kind = (phase.name, *kind_of(failure))
            if phase.name == "SHUTDOWN":
                failure = msgspec.structs.replace(failure, message=f"shutdown(): {failure.message}")
            self._counted(kind, failure, phase.node, phase.process)

    def _counted(self, kind: Kind, failure: Failure, node: str, process: str) -> tuple[ErrorGroup, bool]:
        """The group of a failure, with this one counted, and whether it is new."""
        message = visible(self.mask.text(failure.message))
        group = self._by_kind.get(kind)
        is_new = group is None and len(self._by_kind) < _MAX_GROUPS
        if group is None:
            traceback = visible(self.mask.text(failure.traceback))
            group = ErrorGroup(failure.category, message, traceback, error_log(node, process))
            if is_new:
                self._by_kind[kind] = group
        group.has_several_messages = group.has_several_messages or message != group.message
        group.count += 1
        self.count += 1
        return group, is_new

    def costliest(self) -> list[ErrorCount]:
        """Return the errors that have cost items or mini-batches for good, or else the most common ones, up to some."""
        groups = [group for group in self._by_kind.values() if group.mini_batches_lost]
        groups.sort(key=lambda group: (-group.items_lost, -group.mini_batches_lost, -group.count))
        return [group.in_numbers() for group in (groups or self.most_common(_COMMONEST))[:_COMMONEST]]

    def most_common(self, count: int) -> list[ErrorGroup]:
        return sorted(self._by_kind.values(), key=lambda group: -group.count)[:count]


def files_of(detail: str) -> list[str]:
    """The first files of a mini-batch, in the order in which `run()` got them, from the `detail` of a failed try; `…`
    at their end if there were more. Empty: the detail names none, or can't be read."""
    try:
        decoded = msgspec.json.decode(detail or "{}", type=_Detail)
    except msgspec.DecodeError:
        return []
    return [*decoded.files, "…"] if decoded.files and decoded.items > len(decoded.files) else decoded.files


def error_log(node: str, process: str) -> str:
    """The file below logs/ in which an agent writes a worker's errors; empty when no worker is to blame."""
    return f"user/error/{node}/{process}.txt" if process else ""


def with_cause(failure: JobFailure, errors: ErrorGroups) -> JobFailure:
    """Return the failure with the first error as its cause, and with the most common ones."""
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
        errors=[group.in_numbers() for group in errors.most_common(_COMMONEST)],
    )
