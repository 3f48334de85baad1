"""Answers about the settings of a job, and where each of them came from."""

from __future__ import annotations

from typing import Any, Literal

from parallelrun_api.models.answer import Answer


class EffectiveSetting(Answer):
    """A setting of a job."""

    name: str
    value: Any
    """The value in effect; values of environment variables are masked."""
    default: Any
    origin: Literal["given", "default", "unknown"]
    """`unknown`: an earlier release has accepted the job, and the value is not the default."""
    given_at: str
    """The place of a setting that was given: a JSON pointer into the document that was submitted."""
    description: str
    group: Literal["job", "run", "parallel", "inputs", "outputs", "limits", "other"]


class EffectiveSettings(Answer):
    """The settings of a job, by groups."""

    items: list[EffectiveSetting]
