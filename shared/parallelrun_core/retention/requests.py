"""The files by which master and API agree on retention: the rules that hold, and a request to sweep now.

retention/rules.json        written by a master when it starts
retention/requested.json    written by the API; a master takes it within a second
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec

from parallelrun_core.answers.retention import RuleValue
from parallelrun_core.documents.schema import SCHEMA, decode, encode
from parallelrun_core.durable_files import replace_durably
from parallelrun_core.errors import CorruptLog, NewerSchema
from parallelrun_core.layout import PRIVATE_FILE, PRIVATE_FOLDER, retention_of
from parallelrun_core.retention.rules import Rules, from_record, to_record

_RULES: Final = "rules.json"
_REQUEST: Final = "requested.json"


class _Published(msgspec.Struct, kw_only=True, frozen=True):
    schema: int = SCHEMA
    rules: dict[str, RuleValue]


class _Request(msgspec.Struct, kw_only=True, frozen=True):
    schema: int = SCHEMA
    at: float


def publish_rules(root: Path, rules: Rules) -> None:
    """Write down, durably, which rules hold. Raises OSError."""
    published, record = rules_of(root), to_record(rules)
    if published is None or to_record(published) != record:
        _write(root, _RULES, _Published(rules=record))


def rules_of(root: Path) -> Rules | None:
    """The rules of the master that has started last; None: there was none, or they can't be read."""
    path = retention_of(root) / _RULES
    try:
        return from_record(decode(path.read_bytes(), _Published, path).rules)
    except (OSError, CorruptLog, NewerSchema, ValueError):
        return None


def request_sweep(root: Path, now: float) -> None:
    """Ask a master, durably, for a sweep. Raises OSError."""
    _write(root, _REQUEST, _Request(at=now))


def take_request(root: Path) -> bool:
    """Return whether somebody has asked for a sweep; only one caller is told."""
    try:
        (retention_of(root) / _REQUEST).unlink()
    except FileNotFoundError:
        return False
    return True


def _write(root: Path, name: str, record: msgspec.Struct) -> None:
    folder = retention_of(root)
    folder.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)
    replace_durably(folder / name, encode(record), mode=PRIVATE_FILE)
