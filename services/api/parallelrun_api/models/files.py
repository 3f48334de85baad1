"""Files of a job: logs and outputs."""

from __future__ import annotations

from pydantic import Field

from parallelrun_api.models.answer import Answer, Time


class FileEntry(Answer):
    """A file."""

    path: str = Field(examples=["user/stdout/node0/process000.stdout.txt"])
    bytes: int
    modified: Time


class OutputElsewhere(Answer):
    """An output in an object store, which the server doesn't read: fetch it from there."""

    output: str
    """The name of the output; empty for that of the job, which has the rows."""
    url: str = Field(examples=["s3://bucket/out/parallel_run_step.txt"])


class FileList(Answer):
    """The files below a folder, by path; so many that one answer can tell of."""

    items: list[FileEntry]
    truncated: bool = False
    """There are more, on the pages that follow."""
    next_page_token: str | None = None
    elsewhere: list[OutputElsewhere] = Field(default=[])
    """Outputs in object stores, on each page."""
