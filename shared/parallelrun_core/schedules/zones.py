"""Time zones by their names: those of the tz database, and those of the reference, which are Windows'."""

from __future__ import annotations

import tomllib
from datetime import UTC, tzinfo
from functools import cache
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo, available_timezones

from parallelrun_core.errors import InvalidInput
from parallelrun_core.problems import closest, was_meant

_UTC_NAMES: Final = frozenset({"utc", "etc/utc", "z", "coordinated universal time"})


def zone_named(name: str, pointer: str = "/time_zone") -> tzinfo:
    """The zone of this name, in any letter case.

    Args:
        pointer: where the name was given.

    Raises:
        InvalidInput: there is no such zone, or this machine has no data of time zones. UTC needs none.
    """
    plain = name.strip().lower()
    if plain in _UTC_NAMES:
        return UTC
    zone = _zone(windows_zones().get(plain, name.strip()))
    if zone is not None:
        return zone
    names = available_timezones()
    if not names:
        hint = "install the package tzdata there, as `pip install '.[tables]'` in the checkout does, or use UTC"
        raise InvalidInput.at(pointer, "the server has no data of time zones", hint)
    zone = _zone(next((each for each in names if each.lower() == plain), ""))
    if zone is None:
        raise InvalidInput.at(pointer, f"there is no time zone {name[:80]!r}", _hint(plain, names))
    return zone


@cache
def windows_zones() -> dict[str, str]:
    """Return the tz database's name for each name of Windows, in small letters."""
    table: dict[str, dict[str, str]] = tomllib.loads(
        Path(__file__).with_name("windows_zones.toml").read_text(encoding="utf-8")
    )
    return {f"{name} standard time".lower(): zone for name, zone in table["standard_times"].items()} | table["others"]


def _zone(key: str) -> ZoneInfo | None:
    try:
        return ZoneInfo(key) if key else None
    except (LookupError, ValueError, OSError):  # also for the name of a folder, or one that leads out of it
        return None


def _hint(plain: str, names: set[str]) -> str:
    zone_names = {each.lower(): each for each in names} | {each: each.title() for each in windows_zones()}
    close = closest(plain, zone_names)
    suggestion = was_meant(zone_names[close]) + " " if close else ""
    return f"{suggestion}names are as 'Europe/Berlin', 'UTC', or as Azure ML's 'W. Europe Standard Time'"
