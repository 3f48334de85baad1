"""Finds out how the files of an input may be read as a table: for somebody who looks at the result, never for a job."""

from __future__ import annotations

import bz2
import csv
import lzma
import os
import re
import zlib
from contextlib import suppress
from io import StringIO
from itertools import islice
from typing import Any, Final

from parallelrun_core.errors import InvalidInput
from parallelrun_core.mltable.formats import step_for
from parallelrun_core.mltable.plan import plan_input
from parallelrun_core.spec.fields import Input
from parallelrun_core.storage.path_rule import PathRule
from parallelrun_core.storage.stores import storage_of
from parallelrun_master.planning.formats import delta_log
from parallelrun_master.planning.sources import Sources, paths_in

_HEAD_BYTES: Final = 64 << 10
_DELIMITERS: Final = ",;\t|"
_GZIP: Final = 16 + zlib.MAX_WBITS
_LINES: Final = 20
_COMMIT: Final = re.compile(r"[0-9]{20}\.")
_FEWEST_LINES: Final = 2


def guessed_read(job_input: Input, rule: PathRule | None = None) -> dict[str, Any] | None:
    """Return the read step that the first files look like; None: they look like no table.

    Args:
        rule: which files may be listed and opened; None: any.

    Raises:
        OSError, InvalidInput: the input can't be listed or read.
    """
    version = _newest_version(job_input.path, rule)
    if version is not None:
        return {"read_delta_lake": {"version_as_of": version}}
    plan = plan_input("data", job_input.model_copy(update={"hidden_files": "skip", "litter_files": "skip"}), [])
    paths = [os.fsdecode(path) for path in islice(paths_in(Sources(plan, rule)), 100)]
    named = [(path, step) for path in paths if (step := step_for(path)) and not _is_hidden(path)]
    if not named:
        return None
    path, step = named[0]
    return {step: _options(path, rule) if step == "read_delimited" else {}}


def _newest_version(folder: str, rule: PathRule | None) -> int | None:
    """The newest version of a Delta table; None: the folder is none.

    Its Parquet files alone are not the table: those of earlier versions are among them.
    """
    log = f"{folder.rstrip('/')}/{delta_log.LOG}"
    with suppress(OSError, InvalidInput):
        names = (os.path.basename(os.fsdecode(path)) for path in paths_in(storage_of(log).files(log, rule=rule)))
        return max((int(name[:20]) for name in names if _COMMIT.match(name)), default=None)
    return None


def _is_hidden(path: str) -> bool:
    return os.path.basename(path).startswith((".", "_"))


def _options(path: str, rule: PathRule | None) -> dict[str, Any]:
    """The delimiter of a file of text, if it isn't a comma, and whether values hold line ends."""
    with storage_of(path).open(path, rule) as file:
        head = file.read(_HEAD_BYTES)
    text = _text_of(_unpacked(head))
    lines = text.splitlines()[:_LINES]
    if len(lines) < _FEWEST_LINES or lines[0].startswith("sep="):
        return {}
    delimiter = ","
    with suppress(csv.Error):
        delimiter = csv.Sniffer().sniff("\n".join(lines), _DELIMITERS).delimiter
    options: dict[str, Any] = {} if delimiter == "," else {"delimiter": delimiter}
    return {**options, "support_multi_line": True} if _spans_lines(text, delimiter) else options


def _spans_lines(text: str, delimiter: str) -> bool:
    """Return whether values in quotes hold line ends: then all records have as many fields as the first one."""
    records: list[list[str]] = []
    with suppress(csv.Error):  # a quote that belongs to no value, or the end of the head
        records.extend(csv.reader(StringIO(text, newline=""), delimiter=delimiter, strict=True))
    has_line_ends = any("\n" in value or "\r" in value for record in records for value in record)
    return has_line_ends and len({len(record) for record in records[:-1]}) == 1


def _unpacked(head: bytes) -> bytes:
    """The beginning of what is packed, as far as it is there."""
    with suppress(OSError, EOFError, lzma.LZMAError, ValueError, zlib.error):
        if head.startswith(b"\x1f\x8b"):
            return zlib.decompressobj(wbits=_GZIP).decompress(head, _HEAD_BYTES)
        if head.startswith(b"BZh"):
            return bz2.BZ2Decompressor().decompress(head, _HEAD_BYTES)
        if head.startswith(b"\xfd7zXZ"):
            return lzma.LZMADecompressor().decompress(head, _HEAD_BYTES)
    return head


def _text_of(head: bytes) -> str:
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return head.decode("utf-16", errors="ignore")
    return head.replace(b"\0", b"").decode("utf-8-sig", errors="replace")
