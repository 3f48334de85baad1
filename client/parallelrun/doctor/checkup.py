"""Runs all checks, each for a bounded time."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Final

import msgspec

from parallelrun_core.checks.bounded import LONGEST_S, findings
from parallelrun_core.wire.finding import Level, Place

SUBJECTS: Final = (
    "machine",
    "kernel",
    "volume",
    "redis",
    "environments",
    "separation",
    "server",
    "nodes",
    "computes",
    "job",
    "stores",
)
"""The modules of this package with checks, in the order of the report."""
_EVERYWHERE: Final = frozenset({"machine", "kernel", "volume"})
"""Of these, the checks are `parallelrun_core.checks`: nodes run them, too."""


class Reported(msgspec.Struct, frozen=True):
    """A finding, and what it is about."""

    subject: str
    level: Level
    what: str
    todo: str


def checkup(place: Place, *, longest_s: float = LONGEST_S) -> Iterator[Reported]:
    """Run every check; yields what it says, as soon as it is known."""
    for subject in SUBJECTS:
        package = "parallelrun_core.checks" if subject in _EVERYWHERE else __name__.rpartition(".")[0]
        for check in import_module(f"{package}.{subject}").CHECKS:
            for finding in findings(check, place, longest_s):
                yield Reported(subject, finding.level, finding.what, finding.todo)
