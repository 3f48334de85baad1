"""Files of a job: logs, also of all workers in one order, and outputs."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from parallelrun_core.answers.answer import Answer, OpenEnum, Time


class FileEntry(Answer, kw_only=True, frozen=True):
    """A file."""

    path: Annotated[str, Meta(examples=["user/stdout/node0/process000.stdout.txt"])]
    bytes: int
    modified: Time


class OutputElsewhere(Answer, kw_only=True, frozen=True):
    """An output in an object store, which the server doesn't read: fetch it from there."""

    output: str
    """The name of the output; empty for that of the job, which has the rows."""
    url: Annotated[str, Meta(examples=["s3://bucket/out/parallel_run_step.txt"])]


class FileList(Answer, kw_only=True, frozen=True):
    """The files below a folder, by path; so many that one answer can tell of."""

    items: list[FileEntry]
    truncated: bool = False
    """There are more, on the pages that follow."""
    next_page_token: str | None = None
    elsewhere: list[OutputElsewhere] = []
    """Outputs in object stores, on each page."""


class LogLine(Answer, kw_only=True, frozen=True):
    """A line of a log."""

    path: Annotated[str, Meta(examples=["user/stdout/node0/process000.stdout.txt"])]
    line: int
    """Its number, from 1."""
    offset: int
    """The position where the line begins: ask for the log with `Range: bytes=OFFSET-` to read on from there."""
    text: str
    """The text, at most 1,000 characters of it, with what controls terminals escaped."""
    is_cut: bool


class LogLines(Answer, kw_only=True, frozen=True):
    """Some lines, by the paths of their logs. A page may have no line, and still not be the last."""

    items: list[LogLine]
    searched_bytes: int
    """By this page."""
    next_page_token: str | None = None


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
