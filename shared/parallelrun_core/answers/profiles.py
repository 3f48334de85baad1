"""Profiles of the workers of a job."""

from __future__ import annotations

from parallelrun_core.answers.answer import Answer


class ProfiledWorker(Answer, kw_only=True, frozen=True):
    """A worker with a profile."""

    node: str
    process: str
    total_s: float = 0.0
    """Seconds in which it was measured."""


class ProfiledFunction(Answer, kw_only=True, frozen=True):
    """A function, in all workers that were asked for."""

    function: str
    file: str = ""
    """Relative to the job's code, if it is in there; empty: it isn't written in Python."""
    line: int = 0
    calls: int = 0
    plain_calls: int = 0
    """Without calls from within itself."""
    own_s: float = 0.0
    """Without functions that it has called."""
    cumulative_s: float = 0.0
    """Seconds in the function and in those that it calls."""


class Profile(Answer, kw_only=True, frozen=True):
    """The profiles of a job's workers, summed up."""

    profiling_module: str = ""
    """`cProfile` or `profile`, as the job asks for; empty: for none."""
    workers: list[ProfiledWorker] = []
    left_out: int = 0
    """Workers whose profiles are not in it: too many, or not to be read as data, as those of earlier releases."""
    total_s: float = 0.0
    count: int = 0
    """Number of functions there are in all."""
    items: list[ProfiledFunction] = []
    """The functions that come first in the order asked for."""


class ProfileCall(Answer, kw_only=True, frozen=True):
    """A call, by the way that leads to it."""

    parent: int
    """The place of its caller in the list; -1: it was called by the engine."""
    depth: int
    function: str
    file: str
    line: int
    seconds: float
    own_s: float


class ProfileTree(Answer, kw_only=True, frozen=True):
    """The calls that take most time, each after its caller. Python's profilers know who calls whom, not the way to each
    call: what a function takes is divided among the ways to its callers."""

    total_s: float
    items: list[ProfileCall]
