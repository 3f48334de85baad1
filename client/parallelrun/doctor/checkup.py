"""Runs all checks, each for a bounded time."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from importlib import import_module
from typing import Final

import msgspec

from parallelrun.doctor.finding import Check, Finding, Level, Place, bad

SUBJECTS: Final = (
    "machine",
    "kernel",
    "volume",
    "redis",
    "environments",
    "separation",
    "server",
    "nodes",
    "job",
    "stores",
)
"""The modules of this package with checks, in the order of the report."""
LONGEST_S: Final = 5.0
"""How long a check may take."""
_SLOW: Final = "find out what is slow or away: a disk, a volume, a server"
_REFUSED: Final = "find out why the system refuses this: rights, a sandbox, a disk that is away"
_BUG: Final = "this is a bug in parallelrun: please report it, with what is said here"


class Reported(msgspec.Struct, frozen=True):
    """A finding, and what it is about."""

    subject: str
    level: Level
    what: str
    todo: str


def checkup(place: Place, *, longest_s: float = LONGEST_S) -> Iterator[Reported]:
    """Run every check; yields what it says, as soon as it is known."""
    for subject in SUBJECTS:
        module = import_module(f"parallelrun.doctor.{subject}")
        for check in module.CHECKS:
            for finding in _findings(check, place, longest_s):
                yield Reported(subject, finding.level, finding.what, finding.todo)


def _findings(check: Check, place: Place, longest_s: float) -> list[Finding]:
    said: list[Finding] = []
    error: list[Exception] = []

    def run() -> None:
        try:
            said.extend(check(place))
        except Exception as failure:
            error.append(failure)

    # What hangs in the kernel, as on a volume that is away, can't be broken off; the process doesn't wait for it.
    thread = threading.Thread(target=run, name=check.__name__, daemon=True)
    thread.start()
    thread.join(longest_s)
    name = check.__name__.replace("_", " ")
    if thread.is_alive():
        return [*said, bad(f"{name}: no answer within {longest_s:g} s", _SLOW)]
    if error:
        what = f"{name}: {str(error[0]) or type(error[0]).__name__}"
        return [*said, bad(what, _REFUSED if isinstance(error[0], OSError) else _BUG)]
    return said
