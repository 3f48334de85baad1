"""Answers that entry scripts have remembered for later tries."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from parallelrun_core.answers.answer import Answer


class RememberedAnswer(Answer, kw_only=True, frozen=True):
    """An answer under its key, as a worker of the job, or of one that it resumes from, has remembered it."""

    key: str
    bytes: int
    """Bytes of the line with key and value, as JSON."""
    value_begin: str
    """The first 200 characters of the value, as JSON."""
    log: Annotated[str, Meta(examples=["user/remembered/node1/process000.jsonl"])]
    """The file that has it, below `links.logs`; in a folder `.earlier` when it was taken over from another job."""


class RememberedPage(Answer, kw_only=True, frozen=True):
    """Part of what a job remembers."""

    items: list[RememberedAnswer]
    bytes: int
    """Bytes of all files in which the job remembers."""
    next_page_token: str | None = None


class Forgotten(Answer, kw_only=True, frozen=True):
    """Answers that a job no longer has."""

    count: int
    """Number of answers that were deleted."""
    bytes: int
    """Bytes that its files are shorter by."""
