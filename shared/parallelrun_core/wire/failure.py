"""Why a job failed, as its result records it, and as REST and client show it.

A job's failure is one; a *try* fails with a `Failure` of `parallelrun_core.wire.outcome`, of which a job may have
millions.
"""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

_FEWEST: Final = 20
_FOR_EACH_WORKER: Final = 3


class ErrorCount(msgspec.Struct, kw_only=True, frozen=True):
    """Tries that failed in the same way: with the same type of exception, at the same line of the user's code."""

    category: str
    message: str
    """The message of the first error; if others have another one, with `…` for names, paths and numbers."""
    count: int
    """Number of tries."""
    sample_mini_batches: list[int] = []
    log: str = ""
    """The log that has the first of them in full: a path below `links.logs`."""
    exception: Annotated[str, msgspec.Meta(examples=["ValueError"])] = ""
    """The type of the exception; empty: the script has raised none."""
    place: Annotated[str, msgspec.Meta(examples=["score.py:17"])] = ""
    """The innermost line of the user's code; empty: none of it is to blame."""
    mini_batches: int = 0
    """Number of mini-batches that have failed with it for good."""
    items: int = 0
    """Number of items that have failed with it for good, as far as they were counted."""


class JobFailure(msgspec.Struct, kw_only=True, frozen=True):
    """Why a job failed."""

    code: str
    summary: str
    error_category: str = ""
    """The category of the first cause."""
    first_cause: str = ""
    traceback: str = ""
    sample_mini_batches: list[int] = []
    log: str = ""
    """The log to open first: a path below `links.logs`."""
    hint: str = ""
    errors: list[ErrorCount] = []
    """The five most frequent errors."""

    @property
    def cause_text(self) -> str:
        """The first cause in words, without its category; empty: there is none."""
        return self.first_cause.removeprefix(f"{self.error_category}: ") if self.error_category else self.first_cause


def fewest_failures(workers: int) -> int:
    """Return how many mini-batches have to fail alike, with so many workers, before a job is given up."""
    return max(_FEWEST, _FOR_EACH_WORKER * workers)
