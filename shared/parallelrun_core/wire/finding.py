"""Findings of checks, and the place that a check may look at."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import msgspec


class Level(StrEnum):
    """The level of a finding."""

    OK = "ok"
    WARN = "warn"
    """The subject works, but not as well or as safely as it could."""
    BAD = "bad"
    """Jobs will fail, or get lost, or anybody can run code here."""


class Finding(msgspec.Struct, frozen=True):
    """A finding of a machine about itself."""

    level: Level
    what: str
    todo: str = ""
    """The action to take; empty if nothing is to be done."""


@dataclass(frozen=True, kw_only=True)
class Place:
    root: Path
    """The folder for a cluster's data, or one like it."""
    redis_url: str = ""
    """A server that somebody else runs; empty: the embedded one is meant."""
    url: str = ""
    """URL of an API; empty: none is to be asked."""
    token: str = ""
    job_file: Path | None = None


Check = Callable[[Place], Iterable[Finding]]
"""Says something of one thing, or nothing where it doesn't apply. It leaves nothing behind, and an OSError that it
raises is reported as bad."""


def ok(message: str) -> Finding:
    """All is well."""
    return Finding(Level.OK, message)


def warn(message: str, todo: str) -> Finding:
    """Return a finding about something that could be better."""
    return Finding(Level.WARN, message, todo)


def bad(message: str, todo: str) -> Finding:
    """Return a finding about something that is to be mended."""
    return Finding(Level.BAD, message, todo)
