"""Why a job failed, as the result of the job records it and everybody is told."""

from __future__ import annotations

import msgspec


class ErrorCount(msgspec.Struct, kw_only=True, frozen=True):
    """Tries that failed in the same way."""

    category: str
    message: str
    count: int
    sample_mini_batches: list[int] = []
    log: str = ""
    """Where the first of them is told in full, below logs/."""


class JobFailure(msgspec.Struct, kw_only=True, frozen=True):
    """Why a job failed: first cause, and where to look."""

    code: str
    summary: str
    error_category: str = ""
    """Of the first cause."""
    first_cause: str = ""
    traceback: str = ""
    sample_mini_batches: list[int] = []
    log: str = ""
    hint: str = ""
    errors: list[ErrorCount] = []
    """The five commonest."""
