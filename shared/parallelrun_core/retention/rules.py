"""The rules of retention: how long, how many and how many bytes of each kind are kept."""

from __future__ import annotations

import msgspec
from pydantic import BaseModel, Field


class Rules(msgspec.Struct, kw_only=True, frozen=True):
    """The rules of one root folder. Zero keeps everything of a kind; ages are in days, and may be fractions."""

    jobs_days: float = 0.0
    jobs: int = 0
    jobs_bytes: int = 0
    notice_days: float = 7.0
    """Time between the note on a job that a rule will remove it, and its removal."""
    deleted_days: float = 1.0
    """Time in which a job that a user has deleted can be restored."""
    parts_days: float = 30.0
    logs_days: float = 30.0
    steps_days: float = 90.0
    steps: int = 100_000
    snapshots_days: float = 7.0
    asset_versions: int = 0
    assets_days: float = 0.0
    uploads_days: float = 0.0
    uploads_bytes: int = 0
    blobs_days: float = 0.0
    blobs_bytes: int = 0


class KeepSettings(BaseModel):
    """The settings of a service that applies rules of retention (docs/operating.md)."""

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

    @property
    def rules(self) -> Rules:
        fields = Rules.__struct_fields__
        return Rules(**{name: getattr(self, f"keep_{name}") for name in fields})
