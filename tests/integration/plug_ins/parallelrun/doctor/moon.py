"""Checks the moon."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from parallelrun_core.wire.finding import Check, Finding, Place, ok


def shape(place: Place) -> Iterator[Finding]:
    """It is full."""
    yield ok("the moon is full")


CHECKS: Final[tuple[Check, ...]] = (shape,)
