"""Profiles of single workers, and their sum."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

import msgspec

MOST_FUNCTIONS: Final = 20_000
_MOST_CALLS: Final = 80_000
"""Different ones, in the sum of all workers: scripts can write profiles, too."""
_MOST_OF_ONE: Final = 1000
_MOST_CALLS_OF_ONE: Final = 4000
"""As `parallelrun_worker/diagnostics/profile_data.py` has it."""


class Function(NamedTuple):
    """The identity of a function, in whatever process."""

    file: str
    """Relative to the job's code, if it is in there; empty: it is no Python."""
    line: int
    name: str


class FunctionTimes(msgspec.Struct, array_like=True):
    """The measurements of a function in one worker (`worker/diagnostics/profile_data.py`)."""

    file: str
    line: int
    name: str
    calls: int
    plain_calls: int
    own_s: float
    cumulative_s: float


class ProfiledCall(msgspec.Struct, array_like=True):
    """A call of one function by another one, both by their places in the list of functions."""

    caller: int
    callee: int
    calls: int
    own_s: float
    cumulative_s: float


class WorkerProfile(msgspec.Struct):
    """The profile of one worker, as it has written it."""

    schema: int
    total_s: float
    functions: list[FunctionTimes]
    calls: list[ProfiledCall]
    left_out: int = 0


class Total:
    """The measurements of a function, or of its calls by another one, in all workers."""

    __slots__ = ("calls", "cumulative_s", "own_s", "plain_calls")

    def __init__(self) -> None:
        self.calls = self.plain_calls = 0
        self.own_s = self.cumulative_s = 0.0


class ProfileSum:
    def __init__(self) -> None:
        self.total_s = 0.0
        self.left_out = 0
        """Functions that take next to no time in their process, and are in no list."""
        self.functions: dict[Function, Total] = {}
        self.calls: dict[Function, dict[Function, Total]] = {}
        """By caller, then by callee."""
        self._call_count = 0

    def add(self, profile: WorkerProfile) -> None:
        """Add one.

        Raises:
            ValueError: it isn't a profile of ours.
        """
        functions = [Function(each.file, each.line, each.name) for each in profile.functions]
        count = len(functions)
        if count > _MOST_OF_ONE or len(profile.calls) > _MOST_CALLS_OF_ONE:
            raise ValueError("more than a worker writes")
        if not all(0 <= call.caller < count and 0 <= call.callee < count for call in profile.calls):
            raise ValueError("a call of a function that isn't there")
        self.total_s += profile.total_s
        self.left_out += profile.left_out
        for function, measured in zip(functions, profile.functions, strict=True):
            if function not in self.functions and len(self.functions) >= MOST_FUNCTIONS:
                self.left_out += 1
                continue
            total = self.functions.setdefault(function, Total())
            total.plain_calls += measured.plain_calls
            _add(total, measured)
        for call in profile.calls:
            caller, callee = functions[call.caller], functions[call.callee]
            if caller in self.functions and callee in self.functions:
                self._add_call(caller, callee, call)

    def _add_call(self, caller: Function, callee: Function, call: ProfiledCall) -> None:
        callees = self.calls.setdefault(caller, {})
        if callee not in callees:
            if self._call_count >= _MOST_CALLS:
                return
            self._call_count += 1
        _add(callees.setdefault(callee, Total()), call)

    def roots(self) -> list[Function]:
        """The functions that nobody has called: those of the script that the engine calls, by their time."""
        called = {callee for caller, callees in self.calls.items() for callee in callees if callee != caller}
        roots = [function for function in self.functions if function not in called]
        return self.by_time(roots or list(self.functions)[:1])

    def by_time(self, functions: Iterable[Function]) -> list[Function]:
        return sorted(functions, key=lambda function: (-self.functions[function].cumulative_s, function))


def _add(total: Total, measured: FunctionTimes | ProfiledCall) -> None:
    total.calls += measured.calls
    total.own_s += measured.own_s
    total.cumulative_s += measured.cumulative_s
