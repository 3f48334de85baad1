"""The rules of retention: how long, how many and how many bytes of each kind are kept.

A rule is declared once, as a field of `Rules`: masters take it as a setting, sweeps decide by it (`policy.py`,
`inventory.py`), files, answers and the command line have it by its name without `keep_`. A rule whose value is no
number needs that type in `RuleValue`, and its words beside it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pydantic import BaseModel, Field

from parallelrun_core.answers.retention import RuleValue

_PREFIX: Final = "keep_"


class Rules(BaseModel):
    """The rules of one root folder, which are settings of the service that applies them (docs/operating.md).

    Zero keeps everything of a kind; ages are in days, and may be fractions.
    """

    keep_jobs_days: float = Field(default=0.0, ge=0)
    """Days that a job's folder is kept after the job has ended; 0: for ever. A week before it goes, the job says so."""
    keep_jobs: int = Field(default=0, ge=0)
    """Number of jobs whose folders are kept, those of steps not counted; the oldest go first. 0: all."""
    keep_jobs_bytes: int = Field(default=0, ge=0)
    """Bytes that the folders of all jobs may have; the oldest go first, early enough for their week's notice. 0: any
    number."""
    keep_notice_days: float = Field(default=7.0, ge=0)
    """Days between the note on a job that a rule will remove it, and its removal."""
    keep_deleted_days: float = Field(default=1.0, ge=0)
    """Days in which a job that somebody has deleted can be restored."""
    keep_parts_days: float = Field(default=30.0, ge=0)
    """Days that the rows in part files of a completed job are kept, whose output is elsewhere; without them, it can't
    be resumed or retried. 0: as long as the job."""
    keep_logs_days: float = Field(default=30.0, ge=0)
    """Days that the logs of the workers of a completed job are kept, but not its reports, errors and metrics. 0: as
    long as the job."""
    keep_steps_days: float = Field(default=90.0, ge=0)
    """Days that the step of a pipeline is offered for reuse; 0: as long as its job is there."""
    keep_steps: int = Field(default=100_000, ge=0)
    """Number of steps that are offered for reuse; 0: any number."""
    keep_snapshots_days: float = Field(default=7.0, ge=0)
    """Days that a snapshot of code is kept which no job, schedule, asset or endpoint names any more; 0: for ever."""
    keep_asset_versions: int = Field(default=0, ge=0)
    """Number of versions of each asset that are kept, besides those that have a label or that something names; 0:
    all."""
    keep_assets_days: float = Field(default=0.0, ge=0)
    """Days that an archived version of an asset is kept which nothing names; 0: for ever."""
    keep_uploads_days: float = Field(default=0.0, ge=0)
    """Days that an uploaded file is kept which no job that has not ended, asset or schedule names; 0: for ever."""
    keep_uploads_bytes: int = Field(default=0, ge=0)
    """Bytes that all uploaded files may have; the oldest that nothing names go first. 0: any number."""
    keep_blobs_days: float = Field(default=0.0, ge=0)
    """Days that a file of the default datastore is kept, by the rule of `keep_uploads_days`; 0: for ever."""
    keep_blobs_bytes: int = Field(default=0, ge=0)
    """Bytes that the files of the default datastore may have, by the rule of `keep_uploads_bytes`; 0: any number."""


def to_record(rules: Rules) -> dict[str, RuleValue]:
    """Return the rules as files and answers have them."""
    return {name.removeprefix(_PREFIX): getattr(rules, name) for name in Rules.model_fields}


def from_record(record: Mapping[str, RuleValue]) -> Rules:
    """Return the rules of a record, which may be another release's: what it lacks is as by default.

    Raises:
        ValueError: a value can't be one of that rule.
    """
    return Rules.model_validate({_PREFIX + name: value for name, value in record.items()})
