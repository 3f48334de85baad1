"""Jobs that are about to be submitted, and previews of their data."""

from __future__ import annotations

from typing import Any

from parallelrun_core.answers.answer import Answer, OpenEnum
from parallelrun_core.answers.jobs import JobType


class PreviewColumn(Answer, kw_only=True, frozen=True):
    """A column of a table."""

    name: str
    type: str
    """The type in the DataFrame that `run()` gets, as pandas names it."""


class InputPreview(Answer, kw_only=True, frozen=False):  # type: ignore[misc]  # it is filled while the input is read
    """The preview of one input: what `run()` would get of it."""

    name: str
    path: str
    kind: str
    """`files`: run() gets paths; otherwise the kind of table of which it gets rows."""
    read: dict[str, Any] | None
    """The read step that was found out; null if the job has one, or the files look like no table."""
    files: int
    """Files that were listed."""
    mini_batches: int
    """Mini-batches that these are cut into: of the size that the job gives, or else of the usual one."""
    is_complete: bool
    """All files were listed; otherwise there are more."""
    first_files: list[str]
    """Paths of the first files."""
    columns: list[PreviewColumn]
    rows: list[dict[str, str | None]]
    """The first rows, by column; each value as Python writes it, so `'1'` is a text and `1` a number; null is null."""
    sampled_from: list[str]
    """Files whose first rows have decided on the types of the columns."""
    encodings: dict[str, int]
    """Number of the first files in each encoding."""
    compressions: dict[str, int]
    """Number of the first files with each compression."""
    warnings: list[str]
    errors: list[str]
    """Why the input, or a part of it, can't be read."""


class OutputTable(InputPreview, kw_only=True, frozen=False):  # type: ignore[misc]  # as the one that it extends
    """The first rows of an output, as a job that reads it would get them."""

    total_rows: int | None = None
    """Rows of the whole output; null: its form, such as CSV, doesn't know how many it has."""


class DataPreview(Answer, kw_only=True, frozen=True):
    """The preview of each input that a job would cut into mini-batches."""

    items: list[InputPreview]


class JobExtent(Answer, kw_only=True, frozen=True):
    """The amount of a job before it runs, as its leader would cut its inputs."""

    mini_batches: int
    files: int
    rows: int
    """Rows of tables in forms that know how many they have."""
    bytes: int
    """Bytes of all files, estimated from a sample of them, and of tables."""
    is_complete: bool
    """All inputs were listed; otherwise there are more."""
    workers: int
    """Workers that nodes which are ready now may have for it."""
    nodes: int


class JobCheck(Answer, kw_only=True, frozen=True):
    """A document that would be accepted as a job."""

    type: OpenEnum[JobType]
    name: str
    notes: list[str]
    """Fields of the document that have no effect here, or work differently than in Azure ML."""


class JobDocument(Answer, kw_only=True, frozen=True):
    """A document that makes a job like another one."""

    text: str
    """The settings that were given, as YAML; `code` names the code of that job, as it was kept."""
    left_out: list[str]
    """Settings that are secret: they have to be given again."""
