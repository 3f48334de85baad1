"""Records of `inputs.json` and of schemas. They carry a checksum, since what a disk has changed isn't believed;
those of earlier releases have none, and left it to each reader what follows from the steps.
"""

from __future__ import annotations

import json
import zlib
from typing import Any

_FIELD = "crc32"


def with_crc(record: dict[str, Any]) -> dict[str, Any]:
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


_KEEPING = ("keep_columns", "drop_columns", "convert_column_types", "extract_columns_from_partition_format")
_COUNTING = ("take", "skip")
_WITH_ARROW = ("parquet", "delta_lake")


def completed(plan: dict[str, Any]) -> dict[str, Any]:
    """The record with what newer ones have: the answers of `InputPlan.freeze_answers`."""
    if plan.get("tail") is not None or plan["kind"] == "files":
        return plan
    names = [step["step"] for step in plan["steps"]]
    counts = [number for number, name in enumerate(names) if name in _COUNTING]
    drops = [number for number, name in enumerate(names) if name not in _KEEPING + _COUNTING]
    return {
        **plan,
        "libraries": ["pandas", "pyarrow"] if plan["kind"] in _WITH_ARROW else ["pandas"],
        "keeping": [number for number, name in enumerate(names) if name in _KEEPING],
        "tail": counts[0] if counts and drops and counts[-1] > drops[0] else len(names),
    }
