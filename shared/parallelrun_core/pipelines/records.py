"""`steps/<step>.<generation>.json`: what was decided about a step in one generation of its pipeline.

Most of what a pipeline does can be derived from its spec and from how its jobs have ended. What can't is recorded here,
durably, before it is done. The first record counts: of two turns that race, both do what it says.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, Literal

import msgspec

from parallelrun_core.folder.files import write_once
from parallelrun_core.folder.layout import PRIVATE_FILE, PRIVATE_FOLDER
from parallelrun_core.folder.schema import SCHEMA, decode, encode

if TYPE_CHECKING:
    from parallelrun_core.folder.job_folder import JobFolder

Action = Literal["start", "continue", "reuse", "skip", "fail"]


class StepRecord(msgspec.Struct, kw_only=True, frozen=True):
    """What was decided about a step in one generation of its pipeline."""

    schema: int = SCHEMA
    step: str
    generation: int
    """Of the pipeline."""
    at: float
    action: Action
    """`start`: a new job runs it; `continue`: its job of an earlier generation goes on; `reuse`: the outputs of `job`
    are taken; `skip`: it isn't needed, or can't be run; `fail`: it can't even be started."""
    job: str = ""
    """Whose outputs are the step's: the child that runs it, or the job of which it reuses the outputs."""
    job_generation: int = 0
    """The one that is meant: with `continue`, the new one."""
    retry_failed: bool = False
    """With `continue`: also try again what has failed there."""
    upon: dict[str, str] = {}
    """Which outputs of the steps that it needs it was given; see `Standing.made`."""
    key: str = ""
    """What it has in common with equal steps; empty: its outputs are not to be reused."""
    why: str = ""
    """For people."""
    is_failure: bool = False
    """With `skip`: because another step has failed, or was canceled; not by a condition."""


_SUFFIX: Final = ".json"


def write_record(folder: JobFolder, record: StepRecord) -> StepRecord:
    """Record a decision, durably; returns the one that counts, which another turn may have made before.

    Raises:
        OSError: the folder can't be written.
    """
    steps = folder.layout.steps
    steps.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)
    path = steps / f"{record.step}.{record.generation}{_SUFFIX}"
    try:
        write_once(path, encode(record), mode=PRIVATE_FILE)
    except FileExistsError:
        return decode(path.read_bytes(), StepRecord, path)
    return record


def record_names(folder: JobFolder) -> list[str]:
    """The names of the files with decisions. What is in one never changes."""
    try:
        with os.scandir(folder.layout.steps) as entries:
            return [entry.name for entry in entries if entry.name.endswith(_SUFFIX) and entry.name[0] != "."]
    except FileNotFoundError:
        return []


def read_record(folder: JobFolder, name: str) -> StepRecord:
    """One decision, by the name of its file.

    Raises:
        CorruptLog: it can't be read.
        NewerSchema: a newer release has written it.
    """
    path = folder.layout.steps / name
    return decode(path.read_bytes(), StepRecord, path)


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
