"""Drafts: jobs that are about to be submitted."""

from __future__ import annotations

from parallelrun_api.models.answer import Answer
from parallelrun_api.models.jobs import JobType


class JobCheck(Answer):
    """A document that would be accepted as a job."""

    type: JobType
    name: str
    notes: list[str]
    """Fields of the document that have no effect here, or work differently than in Azure ML."""


class JobDocument(Answer):
    """A document that makes a job like another one."""

    text: str
    """The settings that were given, as YAML; `code` names the code of that job, as it was kept."""
    left_out: list[str]
    """Settings that are secret: they have to be given again."""
