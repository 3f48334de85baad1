"""The reports of what a job has asked of object stores, put together."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import islice
from typing import Final

import msgspec

from parallelrun_api.views.files import ServedFolder
from parallelrun_core.answers.reports import StorageReport, StorageRequests
from parallelrun_core.errors import NotFound, UnsafePath
from parallelrun_core.folder.storage_report import fields_of

_MOST_FILES: Final = 2000
_MOST_BYTES: Final = 256 << 10
"""Of one; hundreds of stores."""


def storage_report(served: ServedFolder) -> StorageReport:
    """Return what all of them say, by node. What isn't a report, or is gone, is left out."""
    paths = [entry.path for entry in islice(served.files(), _MOST_FILES)]
    return StorageReport(items=[item for path in paths for item in _items(served, path)])


def _items(served: ServedFolder, path: str) -> Iterator[StorageRequests]:
    try:
        fd = served.open(path)
    except (NotFound, UnsafePath):
        return
    try:
        text = os.pread(fd, _MOST_BYTES, 0).decode(errors="replace")
    except OSError:
        return
    finally:
        os.close(fd)
    for fields in fields_of(text):
        try:
            yield msgspec.convert(fields, StorageRequests, strict=False)
        except msgspec.ValidationError:
            continue
