"""The `budget` of a job: how much money it may spend on calls of services."""

from __future__ import annotations

from typing import Final

from pydantic import Field

from parallelrun_core.described import Strict

MOST_USD: Final = 1e9


class Budget(Strict):
    """The most that a job may spend."""

    usd: float = Field(gt=0, le=MOST_USD)
    """US dollars."""
