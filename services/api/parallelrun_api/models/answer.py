"""The base of all answers, and of all that is asked."""

from __future__ import annotations

from typing import Final

from pydantic import ConfigDict

from parallelrun_core.described import Described

Time = str
"""RFC 3339, UTC, milliseconds."""

TIME_EXAMPLE: Final = "2026-11-21T09:30:00.000Z"
JOB_ID_EXAMPLE: Final = "job_01kav3x8n2h7q5m9c4t6"


class Answer(Described):
    """A model of an answer. It is built when the first one is given: most are never asked for."""

    model_config = ConfigDict(frozen=True, defer_build=True)


class Asked(Described):
    """A model of what a request brings: exactly these fields, each of its type."""

    model_config = ConfigDict(extra="forbid", strict=True)
