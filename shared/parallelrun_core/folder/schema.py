"""The version of the files in job folders. Every release reads those of earlier ones, and refuses newer ones.

A new field with a default value needs no new version: older releases ignore fields that they don't know.
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
    """Read JSON that carries its version; `path`: its file, for the message.

    Raises:
        NewerSchema: a later release has written it.
        CorruptLog: it can't be read.
    """
    try:
        schema = msgspec.json.decode(raw, type=_Versioned).schema
        if schema > SCHEMA:
            raise NewerSchema(f"{path} has schema {schema}; this release reads up to {SCHEMA}. Update this service.")
        return msgspec.json.decode(raw, type=kind)
    except (ValueError, RecursionError) as error:
        raise CorruptLog(f"{path} can't be read: {error}") from error
