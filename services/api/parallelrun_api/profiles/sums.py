"""Profiles of single workers, and their sum."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import msgspec


class Function(NamedTuple):
    """What makes two functions the same, in whatever process."""

    file: str
    """Relative to the job's code, if it is in there; empty: it is no Python."""
    line: int
    name: str


class Measured(msgspec.Struct, array_like=True):
    """What one worker has measured of a function (`profile_data` in `parallelrun_worker/profile_data.py`)."""

    file: str
    line: int
    name: str
    calls: int
    plain_calls: int
    own_s: float
    cumulative_s: float


class Call(msgspec.Struct, array_like=True):
    """How one function has called another one, both by their places in the list of functions."""

    caller: int
    callee: int
    calls: int
    own_s: float
    cumulative_s: float


class WorkerProfile(msgspec.Struct):
    """The profile of one worker, as it has written it."""

    schema: int
    total_s: float
    functions: list[Measured]
    calls: list[Call]
    left_out: int = 0


class Total:
    """What was measured of a function, or of its calls by another one, in all workers."""

    __slots__ = ("calls", "cumulative_s", "own_s", "plain_calls")

    def __init__(self) -> None:
        self.calls = self.plain_calls = 0
        self.own_s = self.cumulative_s = 0.0


class ProfileSum:
    """The sum of some profiles."""

    def __init__(self) -> None:
        self.total_s = 0.0
        self.left_out = 0
        """Functions that take next to no time in their process, and are in no list."""
        self.functions: dict[Function, Total] = {}
        self.calls: dict[Function, dict[Function, Total]] = {}
        """By caller, then by callee."""

    def add(self, profile: WorkerProfile) -> None:
        """Add one.

        Raises:
            ValueError: it isn't a profile of ours.
        """
        functions = [Function(each.file, each.line, each.name) for each in profile.functions]
        count = len(functions)
        if not all(0 <= call.caller < count and 0 <= call.callee < count for call in profile.calls):
            raise ValueError("a call of a function that isn't there")
        self.total_s += profile.total_s
        self.left_out += profile.left_out
        for function, measured in zip(functions, profile.functions, strict=True):
            total = self.functions.setdefault(function, Total())
            total.plain_calls += measured.plain_calls
            _add(total, measured)
        for call in profile.calls:
            callees = self.calls.setdefault(functions[call.caller], {})
            _add(callees.setdefault(functions[call.callee], Total()), call)

    def roots(self) -> list[Function]:
        """The functions that nobody has called: those of the script that the engine calls, by their time."""
        called = {callee for caller, callees in self.calls.items() for callee in callees if callee != caller}
        roots = [function for function in self.functions if function not in called]
        return self.by_time(roots or list(self.functions)[:1])

    def by_time(self, functions: Iterable[Function]) -> list[Function]:
        """These, by their cumulative time."""
        return sorted(functions, key=lambda function: (-self.functions[function].cumulative_s, function))


def _add(total: Total, measured: Measured | Call) -> None:
    total.calls += measured.calls
    total.own_s += measured.own_s
    total.cumulative_s += measured.cumulative_s
