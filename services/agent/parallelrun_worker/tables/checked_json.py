"""JSON records that carry a checksum: what a disk has changed isn't believed. Records of earlier releases have none."""

from __future__ import annotations

import json
import zlib
from typing import Any

_FIELD = "crc32"


def with_crc(record: dict[str, Any]) -> dict[str, Any]:
    """The record with its checksum."""
    return {**record, _FIELD: _crc(record)}


def read(path: str) -> Any:
    """A record, or a list of records, without their checksums.

    Raises:
        ValueError: it isn't what was written.
        OSError: it can't be read.
    """
    try:
        with open(path, encoding="utf-8") as file:
            content = json.load(file)
    except ValueError as error:
        raise ValueError(f"{path} is damaged: {error}") from error
    for record in content if isinstance(content, list) else [content]:
        crc = record.pop(_FIELD, None) if isinstance(record, dict) else None
        if crc is not None and crc != _crc(record):
            raise ValueError(f"{path} is damaged: it isn't what was written")
    return content


def _crc(record: dict[str, Any]) -> int:
    return zlib.crc32(json.dumps(record, sort_keys=True).encode())
