"""The vulnerabilities that are known and don't concern us, each until a day and for a reason."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from pathlib import Path

_FIELDS = {"id": str, "until": date, "reason": str}


@dataclass(frozen=True)
class Allowed:
    """One that doesn't fail the audit."""

    id: str
    """As the audit shows it, or one of its other names."""
    until: date
    """From the next day on it fails again, so that somebody looks."""
    reason: str


def read_allowed(file: Path) -> list[Allowed]:
    """All of them.

    Raises:
        ValueError: an entry lacks its id, day or reason, or has more than that.
    """
    entries = tomllib.loads(file.read_text(encoding="utf-8")).get("allowed", [])
    for entry in entries:
        if {name: type(value) for name, value in entry.items()} != _FIELDS or not entry["reason"].strip():
            raise ValueError(f"{file}: an entry needs id, until (a date) and reason, and nothing else: {entry}")
    return [Allowed(**entry) for entry in entries]


def is_allowed(names: Iterable[str], allowed: Iterable[Allowed], today: date) -> bool:
    """Whether a vulnerability with these names is allowed on this day."""
    return any(entry.id in names and today <= entry.until for entry in allowed)
