"""Measurements of the profiler in the workers of a job."""

from __future__ import annotations

import msgspec


class ProfiledWorker(msgspec.Struct, kw_only=True, frozen=True):
    """A worker with a profile."""

    node: str
    process: str
    total_s: float = 0.0


class ProfiledFunction(msgspec.Struct, kw_only=True, frozen=True):
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
    """Seconds in it and in the functions that it has called."""


class Profile(msgspec.Struct, kw_only=True, frozen=True):
    """The profiles of a job's workers, summed up."""

    profiling_module: str = ""
    """Name of the profiler that the job asks for; empty: none."""
    workers: list[ProfiledWorker] = []
    left_out: int = 0
    """Workers whose profiles are not in it."""
    total_s: float = 0.0
    count: int = 0
    """Number of functions there are in all."""
    items: list[ProfiledFunction] = []
