"""`steps/<step>.<generation>.json`: what was decided about a step in one generation of its pipeline.

Most of what a pipeline does can be derived from its spec and from how its jobs have ended. What can't is recorded here,
durably, before it is done. The first record counts: of two turns that race, both do what it says.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal

import msgspec

from parallelrun_core.documents.codecs import RecordCodec
from parallelrun_core.documents.collection import Documents
from parallelrun_core.documents.file_store import FileStore
from parallelrun_core.documents.schema import SCHEMA

if TYPE_CHECKING:
    from parallelrun_core.folder.job_folder import JobFolder

Action = Literal["start", "continue", "reuse", "skip", "fail"]


class StepRecord(msgspec.Struct, kw_only=True, frozen=True):
    """A decision about a step in one generation of its pipeline."""

    schema: int = SCHEMA
    step: str
    generation: int
    """The generation of the pipeline."""
    at: float
    action: Action
    """`start`: a new job runs it; `continue`: its job of an earlier generation goes on; `reuse`: the outputs of `job`
    are taken; `skip`: it isn't needed, or can't be run; `fail`: it can't even be started."""
    job: str = ""
    """Whose outputs are the step's: the child that runs it, or the job of which it reuses the outputs."""
    job_generation: int = 0
    """The one that is meant: with `continue`, the new one."""
    retry_failed: bool = False
    """True if a step that continues also tries again what has failed there."""
    upon: dict[str, str] = {}
    """The outputs of the steps that it needs, as it was given them; see `Standing.made`."""
    key: str = ""
    """The key that equal steps share; empty: its outputs are not to be reused."""
    why: str = ""
    """For people."""
    is_failure: bool = False
    """True if it is skipped because another step has failed, or was canceled; not by a condition."""


def write_record(folder: JobFolder, record: StepRecord) -> StepRecord:
    """Record a decision, durably; returns the one that counts, which another turn may have made before.

    Raises:
        OSError: the folder can't be written.
    """
    name, records = f"{record.step}.{record.generation}", _records(folder)
    return record if records.put_if_absent(name, record) else records.get(name)


def record_names(folder: JobFolder) -> list[str]:
    """The names of the decisions of a pipeline. What is in one never changes."""
    return _records(folder).names()


def read_record(folder: JobFolder, name: str) -> StepRecord:
    """Returns one decision.

    Raises:
        CorruptLog: it can't be read.
        NewerSchema: a newer release has written it.
    """
    return _records(folder).get(name)


def _records(folder: JobFolder) -> Documents[StepRecord]:
    steps = folder.layout.steps
    return Documents(FileStore(steps.parent, steps.name), RecordCodec(StepRecord), noun="decision")


def read_records(folder: JobFolder) -> dict[str, list[StepRecord]]:
    """The decisions about each step, in the order of the pipeline's generations; none about others.

    Raises:
        CorruptLog: one of them can't be read.
        NewerSchema: a newer release has written one.
    """
    return by_step(read_record(folder, name) for name in record_names(folder))


def by_step(records: Iterable[StepRecord]) -> dict[str, list[StepRecord]]:
    """Decisions by their steps, in the order of the pipeline's generations."""
    decided: dict[str, list[StepRecord]] = {}
    for record in records:
        decided.setdefault(record.step, []).append(record)
    for each in decided.values():
        each.sort(key=lambda record: record.generation)
    return decided
