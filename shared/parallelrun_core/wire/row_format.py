"""The format of rows in part files and in the output: by the file's extension and, for text, the job's settings."""

from __future__ import annotations

import posixpath
from typing import Literal

RowFormat = Literal["text", "headed", "jsonl", "parquet"]
"""
text      lines, as in the reference (§7)
headed    the same with the names of the columns at the top; each segment has its header apart
jsonl     one JSON value on each line
parquet   each segment is a stream of Arrow's IPC format
"""


def row_format(output: str, *, header: bool) -> RowFormat:
    """The format of the rows of a job with this output: a path or a URL."""
    match posixpath.splitext(output)[1].lower():
        case ".parquet":
            return "parquet"
        case ".jsonl" | ".ndjson":
            return "jsonl"
        case _:
            return "headed" if header else "text"
