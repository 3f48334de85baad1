"""A user's document becomes a schedule: Azure ML's `type: schedule`, with two settings of our own (docs/schedules.md).

    name: nightly
    trigger: {type: cron, expression: "30 2 * * *", time_zone: Europe/Berlin}
    create_job: ./job.yml         # or the job itself, or azureml:JOB, or one of these as `job`, with what is changed
    missed_runs: once             # ours; or skip
    allow_overlap: false          # ours

In the texts of the job, `${{name}}` is the id of each job that is made, and `${{creation_context.trigger_time}}` the
time for which it is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import Field

from parallelrun_core.described import Strict
from parallelrun_core.errors import InvalidInput, Problem
from parallelrun_core.intake.prepared import JOB_ID, TRIGGER_TIME
from parallelrun_core.intake.reading import Reading, read_job
from parallelrun_core.names.assets import Names
from parallelrun_core.names.patterns import PLAIN_NAME, in_words
from parallelrun_core.problems import another_name, validated
from parallelrun_core.schedules.trigger import read_trigger
from parallelrun_core.schedules.trigger_base import Trigger
from parallelrun_core.spec.problems import problem_of
from parallelrun_core.untrusted.document import load_document

_MACRO: Final = re.compile(r"\$\{\{\s*(name|creation_context\s*\.\s*trigger_time)\s*\}\}", re.IGNORECASE)
_OTHER_ACTIONS: Final = ("import_data", "create_monitor", "invoke_endpoint")
_REFERENCE: Final = "azureml:"
_JOB: Final = "/create_job"


class ScheduleDocument(Strict):
    schema_: Any = Field(default=None, alias="$schema")
    type: Literal["schedule"] | None = None
    name: str | None = None
    display_name: str | None = Field(default="", max_length=255)
    description: str | None = Field(default="", max_length=4096)
    tags: dict[str, str] | None = None
    properties: dict[str, Any] | None = None
    trigger: Any
    create_job: Any
    missed_runs: Literal["once", "skip"] = "once"
    allow_overlap: bool = False


@dataclass(frozen=True, kw_only=True)
class ScheduleReading:
    """The content of a schedule's document."""

    name: str
    display_name: str
    description: str
    tags: dict[str, str]
    trigger: Trigger
    missed: Literal["once", "skip"]
    may_overlap: bool
    job: Reading | None
    """The job; None: it is one that there is."""
    like: str = ""
    """The name of that."""
    changes: dict[str, Any] = field(default_factory=dict)
    """The fields that differ from that schedule."""


def read_schedule(
    document: object, *, created: datetime, name: str = "", folder: Path | None = None, names: Names | None = None
) -> ScheduleReading:
    """The schedule that a document describes.

    Args:
        created: when it is made.
        name: what it must be called; then the document need not say so. Empty: what the document says.
        folder: of its relative paths. None: it came over the network, without files beside it.
        names: where names of assets are looked up.

    Raises:
        InvalidInput: with one problem for each wrong field.
    """
    schedule_document = _checked(document, name)
    trigger = read_trigger(schedule_document.trigger, created=created)
    like, changes, job = _job(schedule_document.create_job, folder)
    return ScheduleReading(
        name=schedule_document.name or name,
        display_name=schedule_document.display_name or "",
        description=schedule_document.description or "",
        tags=schedule_document.tags or {},
        trigger=trigger,
        missed=schedule_document.missed_runs,
        may_overlap=schedule_document.allow_overlap,
        job=None if job is None else _read(*job, names),
        like=like,
        changes=changes,
    )


def _checked(document: object, name: str) -> ScheduleDocument:
    if not isinstance(document, dict):
        raise InvalidInput.at("", "a schedule is a mapping of settings", "see docs/schedules.md")
    for action in _OTHER_ACTIONS:
        if action in document:
            raise InvalidInput.at(f"/{action}", "a schedule makes jobs, and nothing else", "create_job")
    schedule_document = validated(ScheduleDocument, document, problem_of=problem_of)
    called = schedule_document.name or name
    if not re.fullmatch(PLAIN_NAME, called):
        raise InvalidInput.at("/name", f"must be {in_words(PLAIN_NAME)}" if called else "this field is required")
    if name and called != name:
        raise InvalidInput(problems=(another_name(name),))
    return schedule_document


def _job(job: Any, folder: Path | None) -> tuple[str, dict[str, Any], tuple[dict[str, Any], Path | None, str] | None]:
    """The name of a job that there is with what is changed, or a document, its folder, and where it stands."""
    changes: dict[str, Any] = {}
    if isinstance(job, dict) and "job" in job:
        changes = {key: value for key, value in job.items() if key not in ("job", "type")}
        job = job["job"]
    if isinstance(job, str) and job.startswith(_REFERENCE):
        return job.removeprefix(_REFERENCE), changes, None
    if isinstance(job, str):
        job, beside, where = _file(job, folder)
        return "", {}, (_merged(job, changes), beside, where)
    if not isinstance(job, dict):
        raise InvalidInput.at(_JOB, "must be a job, the path of its file, or azureml:JOB")
    return "", {}, (_merged(job, changes), folder, "")


def _file(path: str, folder: Path | None) -> tuple[dict[str, Any], Path, str]:
    if folder is None:
        hint = "write the job itself here, or azureml:JOB; the command line reads files"
        raise InvalidInput.at(_JOB, f"the server can't read your file {path[:200]!r}", hint)
    file = folder / path.removeprefix("file:")
    try:
        document = load_document(file.read_bytes())
    except OSError as error:
        raise InvalidInput.at(_JOB, f"{file}: {error.strerror or error}") from error
    except InvalidInput as error:
        error.replace_problems(lambda problem: replace(problem, place=str(file)))
        raise
    if not isinstance(document, dict):
        raise InvalidInput.at(_JOB, f"{file} has no job: that is a mapping of settings")
    return document, file.parent, str(file)


def _merged(document: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """The document with the changes, which go into mappings."""
    merged = dict(document)
    for key, value in changes.items():
        inner = merged.get(key)
        merged[key] = _merged(inner, value) if isinstance(inner, dict) and isinstance(value, dict) else value
    return merged


def _read(document: dict[str, Any], folder: Path | None, file: str, names: Names | None) -> Reading:
    """The job, whose problems are located in the schedule, or in its own file."""

    def located(problem: Problem) -> Problem:
        return replace(problem, place=file) if file else replace(problem, pointer=_JOB + problem.pointer)

    try:
        reading = read_job(_with_placeholders(document), folder=folder, names=names)
    except InvalidInput as error:
        error.replace_problems(located)
        raise
    return replace(reading, located=located)


def _with_placeholders(part: Any) -> Any:
    """Return what each job has for itself becomes what `prepared.job_of` fills in."""
    match part:
        case dict():
            return {key: _with_placeholders(value) for key, value in part.items()}
        case list():
            return [_with_placeholders(value) for value in part]
        case str():
            return _MACRO.sub(lambda macro: JOB_ID if macro[1].lower() == "name" else TRIGGER_TIME, part)
    return part
