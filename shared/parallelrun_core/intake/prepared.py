"""Jobs that were checked, and whose code is stored, long before they are made: by a schedule, or a call of an endpoint.

What differs from one job to the next stands in the texts of its spec as a placeholder.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from parallelrun_core.folder.records import JobRecord
from parallelrun_core.spec import JobSpec
from parallelrun_core.spec.expressions import UNIQUE_NAME
from parallelrun_core.spec.fields import STORED

JOB_ID: Final = UNIQUE_NAME
"""Stands for the id of the job, or the name by which its client knows it."""
TRIGGER_TIME: Final = "__parallelrun_trigger_time__"
"""Stands for the time for which a schedule makes the job."""


def job_of(
    prepared: JobRecord, job_id: str, *, submitted: float, values: Mapping[str, str] = {}, note: str = ""
) -> JobRecord:
    """The job that is made now.

    Args:
        submitted: in seconds since the epoch.
        values: what placeholders stand for; `JOB_ID` for the id, unless they say otherwise.
        note: on where it comes from, for people.
    """
    values = {JOB_ID: job_id, **values}
    notes = [*prepared.notes, *([note] if note else [])]
    text = msgspec.json.encode(prepared.spec)
    has_placeholders = any(placeholder.encode() in text for placeholder in values)
    spec = _filled(prepared.spec, values) if has_placeholders else prepared.spec
    return msgspec.structs.replace(prepared, job_id=job_id, submitted=submitted, spec=spec, notes=notes)


def named(spec: JobSpec, job_id: str) -> JobSpec:
    """A spec with the id of the job in its texts."""
    return JobSpec.model_validate(_filled(spec.model_dump(mode="json"), {JOB_ID: job_id}), context=STORED)


def _filled(part: Any, values: Mapping[str, str]) -> Any:
    match part:
        case dict():
            return {key: _filled(value, values) for key, value in part.items()}
        case list():
            return [_filled(value, values) for value in part]
        case str():
            for placeholder, value in values.items():
                part = part.replace(placeholder, value)
    return part
