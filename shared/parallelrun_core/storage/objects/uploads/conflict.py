"""Conflicts of names: an object of somebody else has the name that a job wants."""

from __future__ import annotations

from parallelrun_core.errors import Conflict


def taken(url: str) -> Conflict:
    """The error, in the same words for every store."""
    return Conflict(
        f"{url!r} is an object that this job has not made, and existing objects are never overwritten. The rows are "
        "kept: remove that object, then resume the job."
    )
