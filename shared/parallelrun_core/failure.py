"""Why a job failed, as its result records it and users see it."""

from __future__ import annotations

import msgspec


class ErrorCount(msgspec.Struct, kw_only=True, frozen=True):
    """Tries that failed in the same way."""

    category: str
    message: str
    count: int
    sample_mini_batches: list[int] = []
    log: str = ""
    """The log below logs/ that has the first of them in full."""


class JobFailure(msgspec.Struct, kw_only=True, frozen=True):
    """Why a job failed: the first cause, and where to look."""

    code: str
    summary: str
    error_category: str = ""
    """Of the first cause."""
    first_cause: str = ""
    traceback: str = ""
    sample_mini_batches: list[int] = []
    log: str = ""
    """A log to open first, by its path in the job's logs."""
    hint: str = ""
    errors: list[ErrorCount] = []
    """The five most frequent ones."""
