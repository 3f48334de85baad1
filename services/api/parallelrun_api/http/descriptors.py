"""The limit on connections that follows from the process's limit on open files."""

from __future__ import annotations

import resource
from contextlib import suppress
from typing import Final

_OWN: Final = 192
"""Open files that have nothing to do with clients: Redis, threads, uploads on their way."""
_FOR_EACH: Final = 2
"""A connection, and the file that is downloaded through it."""


def raise_limit() -> None:
    """Let the process open as many files as it may; a soft limit of 1,024 is there for programs that call `select`."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(OSError, ValueError):  # a sandbox may forbid it
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def most_connections(requested: int) -> int:
    """Return this number of connections, or the number that the limit on open files leaves room for."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return requested
    return min(requested, max(16, (soft - _OWN) // _FOR_EACH))
