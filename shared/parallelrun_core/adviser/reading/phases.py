"""The starts of workers and the length of init(): from processed_mini-batches.csv, where only a few rows say it."""

from __future__ import annotations

import csv
import mmap
import os
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from parallelrun_core.adviser.evidence import Init
from parallelrun_core.layout import Logs
from parallelrun_core.untrusted.paths import open_ordinary

_ENDED = b"ENTRY_SCRIPT_INIT_"
_MOST_BYTES = 64 << 10
_MOST_SCANNED = 256 << 20
_MOST_INITS = 50_000


def read_inits(logs: Path, begun: float) -> list[Init]:
    """Each init() that has ended since the job began; none, if there is no report. Times count from `begun`.

    Of a huge report, those in its first 256 MiB, and no more than 50,000: so a job with more is taken to have no more.
    """
    path = Logs(logs).job_report / "processed_mini-batches.csv"
    try:
        with open_ordinary(path) as file, _start_of(file) as text:
            header = next(csv.reader([text[: max(0, text.find(b"\n"))].decode()]), [])
            inits = [_init(dict(zip(header, row, strict=False)), begun) for row in islice(_rows(text), _MOST_INITS)]
    except (OSError, ValueError):
        return []
    return [init for init in inits if init is not None and init.started_s >= -_CLOCKS_S]


_CLOCKS_S = 5.0


def _start_of(file: BinaryIO) -> mmap.mmap:
    length = min(os.fstat(file.fileno()).st_size, _MOST_SCANNED)
    return mmap.mmap(file.fileno(), length, access=mmap.ACCESS_READ)


def _rows(text: mmap.mmap) -> Iterator[list[str]]:
    """The lines that may be about init(); a message of an error may name it, too."""
    at = text.find(_ENDED)
    while at >= 0:
        begin = text.rfind(b"\n", max(0, at - _MOST_BYTES), at) + 1
        end = text.find(b"\n", at)
        if end < 0:
            return
        yield next(csv.reader([text[begin:end].decode(errors="replace")]), [])
        at = text.find(_ENDED, end)


def _init(cells: dict[str, str], begun: float) -> Init | None:
    status = cells.get("Status", "")
    if not status.startswith(_ENDED.decode()) or status.endswith("_START"):
        return None
    with suppress(ValueError, KeyError):
        node, _, process = cells["Process"].partition("/")
        at = datetime.fromisoformat(cells["Process Start Time"]).replace(tzinfo=UTC).timestamp()
        return Init(node, process, at - begun, float(cells["Elapsed Seconds"]), is_done=status.endswith("_DONE"))
    return None
