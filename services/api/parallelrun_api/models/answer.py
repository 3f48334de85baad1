"""What all answers have in common."""

from __future__ import annotations

from typing import Final

from pydantic import BaseModel, ConfigDict

Time = str
"""RFC 3339, UTC, milliseconds."""

TIME_EXAMPLE: Final = "2026-11-21T09:30:00.000Z"
JOB_ID_EXAMPLE: Final = "job_01kav3x8n2h7q5m9c4t6"


class Answer(BaseModel):
    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)
