"""The JSON files of a job that are written once: what was submitted, how it ended, and what was asked in between.

job_folder.py says where they are.
"""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec
from pydantic import ValidationError

from parallelrun_core.documents.schema import SCHEMA
from parallelrun_core.errors import CorruptLog
from parallelrun_core.spec import JobSpec, PipelineSpec
from parallelrun_core.spec.fields import STORED
from parallelrun_core.storage.path_rule import Places
from parallelrun_core.wire.failure import ErrorCount, JobFailure
from parallelrun_core.wire.progress import Progress
from parallelrun_core.wire.states import JobState

Spec = TypeVar("Spec", JobSpec, PipelineSpec)


class Resumed(msgspec.Struct, kw_only=True, frozen=True):
    """The work that a job has taken over from an earlier one."""

    job_id: str
    mini_batches: int
    rows: int
    bytes: int
    """Bytes of rows, as they are in the part files."""
    listed: float = 0.0
    """Time when the list of its inputs was complete, in seconds since the epoch; 0: by an earlier release."""


class Parent(msgspec.Struct, kw_only=True, frozen=True):
    """The pipeline of which a job is a step."""

    job_id: str
    step: str
    """Its name there."""
    owner: str
    """The outermost pipeline: all of its workers are the same user, so that they can read what others wrote."""


class JobRecord(msgspec.Struct, kw_only=True, frozen=True):
    """`job.json`: what was submitted."""

    schema: int = SCHEMA
    job_id: str
    submitted: float
    code: str
    """Name of the snapshot below `code/`: its sha256."""
    spec: dict[str, Any]
    notes: list[str] = []
    """Notes on what ParallelRun does not do of the submitted document, or not as Azure ML does."""
    resumed: Resumed | None = None
    places: Places | None = None
    """The places where its paths may be; None if an earlier release has accepted it."""
    parent: Parent | None = None
    """The pipeline of which it is a step; None: somebody has submitted it."""
    origins: dict[str, str] | None = None
    """The settings that were given, each with its JSON pointer into the submitted document. None if an earlier release
    has accepted it."""
    traceparent: str = ""
    """The span of whoever has submitted it, as the header `traceparent` has it; that of a step is with its pipeline."""
    owner: str = ""
    """The person whose job it is: the name of a token. Empty: nobody's in particular."""

    @property
    def is_pipeline(self) -> bool:
        """Return whether it has steps, and no mini-batches."""
        return self.spec.get("type") == "pipeline"

    @property
    def outermost(self) -> str:
        """The job by whose id the user of its workers is chosen: the outermost pipeline, or the job itself."""
        return self.parent.owner if self.parent is not None else self.job_id

    def pipeline_spec(self) -> PipelineSpec:
        """The spec of a pipeline, without the fields that a later release has added.

        Raises:
            CorruptLog: a field is not valid.
        """
        return self._read(PipelineSpec)

    def job_spec(self) -> JobSpec:
        """The spec of a job that is no pipeline, without the fields that a later release has added.

        Raises:
            CorruptLog: a field is not valid.
        """
        return self._read(JobSpec)

    def _read(self, kind: type[Spec]) -> Spec:
        try:
            return kind.model_validate(self.spec, extra="ignore", context=STORED)
        except ValidationError as error:
            fields = ", ".join("/".join(map(str, details["loc"])) or "spec" for details in error.errors())
            raise CorruptLog(f"The spec of job {self.job_id} can't be read by this release: {fields}.") from error


class JobResult(msgspec.Struct, kw_only=True, frozen=True):
    """`result.json`: how it ended."""

    schema: int = SCHEMA
    job_id: str
    state: JobState
    started: float | None
    ended: float
    progress: Progress
    output: str = ""
    """Path of the output file; empty when there is none."""
    output_bytes: int = 0
    output_sha256: str = ""
    order: str = ""
    """`sorted`, or `listing` when a folder was too large to be sorted."""
    warnings: list[str] = []
    """Warnings about the output, though the job has completed."""
    failure: JobFailure | None = None
    errors: list[ErrorCount] = []
    """The errors that have cost the most items, up to five; of an earlier release none."""
    skipped: int = 0
    """Files that were left out of the inputs, with a warning."""
    metrics: dict[str, bool | int | float | str | None] = {}
    """The last value of each metric that was logged, up to a number of them (metrics.py)."""


class Reopening(msgspec.Struct, kw_only=True, frozen=True):
    """`reopened.<generation>.json`: a job that had ended goes on, with its old plan."""

    schema: int = SCHEMA
    generation: int
    at: float
    retry_failed: bool
    """True if mini-batches that failed are tried again; otherwise only those without a decision are run."""
    mini_batches: list[int] | None = None
    """Only these of the failed ones; all of them when None."""
    retry_items: bool = False
    """True if items that have failed alone are tried again, too: of the mini-batches above, or of all."""
    accept_changed_inputs: bool = False
    """Continue even if files were changed or removed since they were scheduled."""
    budget_usd: float | None = None
    """The budget from now on, in US dollars; None: it stays as it was."""


class CancelRequest(msgspec.Struct, kw_only=True, frozen=True):
    """`cancel.<generation>.json`: the user wants this generation canceled, whatever Redis knows of it."""

    schema: int = SCHEMA
    generation: int
    at: float
