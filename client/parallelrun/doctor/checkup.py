"""Runs all checks, each for a bounded time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from parallelrun import doctor
from parallelrun_core import checks
from parallelrun_core.checks.bounded import LONGEST_S, findings
from parallelrun_core.wire.finding import Check, Level, Place

_OF_SERVICES: Final = ("redis", "environments", "separation", "server", "nodes", "computes", "job")
"""The first subjects of the report after those of a machine; all others follow by name."""


class Reported(msgspec.Struct, frozen=True):
    """A finding, and what it is about."""

    subject: str
    level: Level
    what: str
    todo: str


def subjects() -> dict[str, tuple[Check, ...]]:
    """The checks of each subject, in the order of the report."""
    others = checks.subjects_in(doctor)
    names = sorted(others, key=(*_OF_SERVICES, *others).index)
    return checks.subjects_in(checks) | {name: others[name] for name in names}


def checkup(place: Place, *, longest_s: float = LONGEST_S) -> Iterator[Reported]:
    """Run every check; yields what it says, as soon as it is known."""
    for subject, of_subject in subjects().items():
        for check in of_subject:
            for finding in findings(check, place, longest_s):
                yield Reported(subject, finding.level, finding.what, finding.todo)
