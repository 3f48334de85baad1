"""The version of the files in job folders. Every release reads those of earlier ones, and refuses newer ones.

A new field with a default value needs no new version: older releases ignore fields that they don't know.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final, TypeVar

import msgspec
from isal.isal_zlib import crc32

from parallelrun_core.errors import CorruptLog, NewerSchema

SCHEMA: Final = 1
"""Of what is written; every release so far can read it."""
LOST_DECISIONS: Final = 2
"""Of a decision log with a decision that was lost with its rows (`decisions.py`), which would be counted otherwise."""
RETRIED_ITEMS: Final = 3
"""Of a decision log of a job whose failed items were tried again: the later of two successes counts."""

T = TypeVar("T")

_CRC_MARK: Final = b',\n  "crc32": '


class _Versioned(msgspec.Struct):
    schema: int = SCHEMA


_VERSIONED: Final = msgspec.json.Decoder(_Versioned)


def encode(record: msgspec.Struct) -> bytes:
    """JSON for people, with a checksum as its last field. Other programs may write it without one."""
    body = msgspec.json.format(msgspec.json.encode(record), indent=2).removesuffix(b"\n}")
    return b"%s%s%d\n}" % (body, _CRC_MARK, crc32(body))


def decode(raw: bytes, kind: type[T], path: Path | str, *, reads_up_to: int = 0) -> T:
    """Read JSON that carries its version.

    Args:
        path: names its file in messages.
        reads_up_to: the highest version of this file that is known, if it is higher than `SCHEMA`.

    Raises:
        NewerSchema: a later release has written it.
        CorruptLog: it can't be read.
    """
    try:
        body, mark, crc = raw.rpartition(_CRC_MARK)
        if mark and crc32(body) != int(crc.rstrip(b"}\n ")):
            raise CorruptLog(f"{path} can't be read: it isn't what was written (without its line crc32 it is believed)")
        schema = _VERSIONED.decode(raw).schema
        if schema > (highest := max(SCHEMA, reads_up_to)):
            raise NewerSchema(f"{path} has schema {schema}; this release reads up to {highest}. Update this service.")
        return msgspec.json.decode(raw, type=kind)
    except (ValueError, RecursionError) as error:
        raise CorruptLog(f"{path} can't be read: {error}") from error
