"""The version of what we write to job folders. Every release reads what earlier ones wrote, and refuses what is newer.

A field that is added with a default value needs no new version: older releases pass over what they don't know.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final, TypeVar

import msgspec

from parallelrun_core.errors import CorruptLog, NewerSchema

SCHEMA: Final = 1

T = TypeVar("T")


class _Versioned(msgspec.Struct):
    schema: int = SCHEMA


def decode(raw: bytes, kind: type[T], path: Path) -> T:
    """Read JSON that carries its version; `path`: where it was found, for the message.

    Raises:
        NewerSchema: a later release has written it.
        CorruptLog: it is not what it should be.
    """
    try:
        found = msgspec.json.decode(raw, type=_Versioned).schema
        if found > SCHEMA:
            raise NewerSchema(f"{path} has schema {found}; this release reads up to {SCHEMA}. Update this service.")
        return msgspec.json.decode(raw, type=kind)
    except (ValueError, RecursionError) as error:
        raise CorruptLog(f"{path} can't be read: {error}") from error
