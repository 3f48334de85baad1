"""Why a job failed, as its result records it, and as REST and client show it.

A job's failure is one; a *try* fails with a `Failure` of `parallelrun_core.wire.outcome`, of which a job may have
millions.
"""

from __future__ import annotations

import msgspec


class ErrorCount(msgspec.Struct, kw_only=True, frozen=True):
    """Tries that failed in the same way: with the same type of exception, at the same line of the user's code."""

    category: str
    message: str
    """The message of the first error."""
    count: int
    sample_mini_batches: list[int] = []
    log: str = ""
    """The log below logs/ that has the first of them in full."""


class JobFailure(msgspec.Struct, kw_only=True, frozen=True):
    """Why a job failed: the first cause, and where to look."""

    code: str
    summary: str
    error_category: str = ""
    """The category of the first cause."""
    first_cause: str = ""
    traceback: str = ""
    sample_mini_batches: list[int] = []
    log: str = ""
    """A log to open first, by its path in the job's logs."""
    hint: str = ""
    errors: list[ErrorCount] = []
    """The five most frequent ones."""
