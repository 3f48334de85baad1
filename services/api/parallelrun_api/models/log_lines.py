"""Answers about searches in logs."""

from __future__ import annotations

from pydantic import Field

from parallelrun_api.models.answer import Answer


class LogLine(Answer):
    """A line of a log."""

    path: str = Field(examples=["user/stdout/node0/process000.stdout.txt"])
    line: int
    """Its number, from 1."""
    offset: int
    """The position where the line begins: ask for the log with `Range: bytes=OFFSET-` to read on from there."""
    text: str
    """The text, at most 1,000 characters of it, with what controls terminals escaped."""
    is_cut: bool


class LogLines(Answer):
    """Some lines, by the paths of their logs. A page may have no line, and still not be the last."""

    items: list[LogLine]
    searched_bytes: int
    """By this page."""
    next_page_token: str | None = None
