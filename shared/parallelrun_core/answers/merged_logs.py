"""The logs of all workers in one order."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from parallelrun_core.answers.answer import Answer, OpenEnum, Time


class MergedLine(Answer, kw_only=True, frozen=True):
    """A line of the log of one worker, or of the leader."""

    at: Time
    """The time of the line; of what was printed, to a tenth of a second."""
    has_time: bool
    """False: nothing says when it was printed, and `at` is the time when its worker began."""
    level: str | None
    """The level that the line says; null: it says none."""
    node: str
    """Empty: the leader."""
    process: str
    mini_batch: int | None
    """The mini-batch that ran then; null: none, several at once, or unknown."""
    source: OpenEnum[Literal["stdout", "stderr", "logger", "worker", "leader"]]
    """`logger`: that of `EntryScript`; `worker` and `leader` are the engine's own logs."""
    path: Annotated[str, Meta(examples=["user/stdout/node0/process000.stdout.txt"])]
    offset: int
    """The position in its log where the line begins."""
    text: str
    """The text, at most 1,000 characters of it, with what controls terminals escaped."""
    is_cut: bool


class MergedLines(Answer, kw_only=True, frozen=True):
    """Some lines of all logs, by time. A page may have no line, and still not be the last."""

    items: list[MergedLine]
    files: int
    """Logs that are merged, without empty ones."""
    files_left_out: int
    """Logs beyond the most that are merged: name a `worker`."""
    next_page_token: str | None = None
