"""Tags of a job: those that it was submitted with, until somebody changes them, also after it has ended.

Changed tags stand in a small file of the job's folder, beside its record, which is never written again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from parallelrun_core.documents.schema import SCHEMA, decode, encode
from parallelrun_core.durable_files import replace_durably
from parallelrun_core.errors import CorruptLog
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.layout import PRIVATE_FILE

_FILE: Final = "tags.json"


class _Tags(msgspec.Struct, kw_only=True, frozen=True):
    schema: int = SCHEMA
    tags: dict[str, str]


def submitted_tags(spec: Mapping[str, Any]) -> dict[str, str]:
    """Return the tags in the spec of a job."""
    return {str(name): "" if value is None else str(value) for name, value in (spec.get("tags") or {}).items()}


def tags_of(folder: JobFolder, spec: Mapping[str, Any]) -> dict[str, str]:
    """Return the tags of a job; a damaged file counts as none. Raises OSError, NewerSchema."""
    path = folder.path / _FILE
    try:
        return decode(path.read_bytes(), _Tags, path).tags
    except (FileNotFoundError, NotADirectoryError, CorruptLog):
        return submitted_tags(spec)


def write_tags(folder: JobFolder, tags: Mapping[str, str]) -> None:
    """Record the tags that a job has from now on, durably. Raises OSError."""
    replace_durably(folder.path / _FILE, encode(_Tags(tags=dict(tags))), mode=PRIVATE_FILE)
