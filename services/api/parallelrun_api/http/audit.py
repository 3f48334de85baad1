"""The audit log: who changed or fetched what, and who was turned away.

One JSON object on each line, all of it ASCII and without control characters. A line is written before its answer is
sent, so nobody has been answered without one. Refusals that come in masses are counted instead of listed, and so is
what several people read on the web page: in a file of its own, so that it never pushes out a line about a change.
"""

from __future__ import annotations

import errno
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Literal

from starlette.types import Scope

from parallelrun_core.service import telemetry

log = telemetry.logger()

SAFE_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_REFUSALS: Final = frozenset({401, 403, 421})
_MAX_BYTES: Final = 10 << 20
_KEPT_FILES: Final = 5
_LISTED_REFUSALS: Final = 20
"""Refusals that are listed in each period."""
_PERIOD_S: Final = 60.0
_OF_THE_ADDRESS: Final = frozenset({"job_id", "subscription", "group", "workspace", "account"})
"""What a path names that is told by itself, or that a client of Azure ML writes into all of its paths."""
_MOST_CHARACTERS: Final = 1000
ReadKind = Literal["", "each", "logs", "mini_batches", "metrics", "pictures", "outputs", "assets"]
"""What a route says of itself, if it hands out what jobs have made: the kind by which its reads are counted, or that
each of them has a line of its own."""
_WINDOW_S: Final = 300.0
_MOST_WINDOWS: Final = 10_000


class AuditFile:
    """A file that only its owner can read, with a few older ones beside it: `audit.log.1` is the newest of them."""

    def __init__(self, path: Path, *, max_bytes: int = _MAX_BYTES) -> None:
        self._path = path
        self._max_bytes = max_bytes
        self._fd = self._opened()
        self._is_well = True

    def write(self, line: bytes) -> bool:
        """Add a line, and return whether it could be written; the first of several errors is logged."""
        try:
            self._append(line)
        except OSError as error:
            if self._is_well:
                log.error("audit_not_written", file=str(self._path), error=str(error))
            self._is_well = False
        else:
            self._is_well = True
        return self._is_well

    def _append(self, line: bytes) -> None:
        size = os.fstat(self._fd).st_size
        if size + len(line) > self._max_bytes:
            self._turn()
            size = 0
        if os.write(self._fd, line) < len(line):
            os.ftruncate(self._fd, size)  # no half of a line, in which the next one would get lost
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def close(self) -> None:
        os.close(self._fd)

    def _opened(self) -> int:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        return os.open(self._path, flags, 0o600)

    def _turn(self) -> None:
        for number in range(_KEPT_FILES - 1, 0, -1):
            older = self._nth(number)
            if older.exists():
                older.replace(self._nth(number + 1))
        self._path.replace(self._nth(1))
        fd = self._opened()
        os.close(self._fd)
        self._fd = fd

    def _nth(self, number: int) -> Path:
        return self._path.with_name(f"{self._path.name}.{number}")


class ListedRefusals:
    """The refusals that are listed: so many in each period, so that nobody can fill the log with them."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._until = 0.0
        self._left = 0
        self.unlisted = 0
        """Refusals that were only counted, since `take_unlisted` was last called."""

    def admit(self) -> bool:
        """Return whether this one is to be listed."""
        now = self._clock()
        if now >= self._until:
            self._until, self._left = now + _PERIOD_S, _LISTED_REFUSALS
        if not self._left:
            self.unlisted += 1
            return False
        self._left -= 1
        return True

    def take_unlisted(self) -> int:
        """The number of those that were only counted; they count as reported now."""
        count, self.unlisted = self.unlisted, 0
        return count


class Audit:
    """The audit log of one server.

    Args:
        file: where to write; None: stderr.
        reads_file: where to write what was read; None: stderr.
    """

    def __init__(
        self,
        file: AuditFile | None = None,
        refusals: ListedRefusals | None = None,
        *,
        reads_file: AuditFile | None = None,
        reads: ReadCounts | None = None,
    ) -> None:
        self._file = file
        self._reads_file = reads_file
        self._reads = reads or ReadCounts()
        self.has_people: Callable[[], bool] = lambda: False
        """Returns whether several people use the server: else, reads are nobody's business."""
        self._refusals = refusals or ListedRefusals()

    def answered(self, scope: Scope, status: int, headers: list[tuple[bytes, bytes]]) -> None:
        """Write a line if this answer, which is about to be sent, deserves one."""
        route = getattr(scope.get("route"), "name", "")
        kind = getattr(scope.get("route"), "reads", "")
        if status in _REFUSALS:
            if not self._refusals.admit():
                return
            did = "refused"
        elif scope["method"] not in SAFE_METHODS or kind == "each":
            did = route or "unknown"
        else:
            if kind and status < 400 and self.has_people():
                self._reads.add(kind, _facts(scope, "read", status, headers))
            self._write_reads()
            return
        if unlisted := self._refusals.take_unlisted():
            self._write({"did": "refused_unlisted", "count": unlisted})
        self._write(_facts(scope, did, status, headers))

    def close(self) -> None:
        """Write what is still to be told, and close the file."""
        if unlisted := self._refusals.take_unlisted():
            self._write({"did": "refused_unlisted", "count": unlisted})
        self._write_reads(all_of_them=True)
        for file in (self._file, self._reads_file):
            if file is not None:
                file.close()

    def _write_reads(self, *, all_of_them: bool = False) -> None:
        for facts in self._reads.ended(all_of_them=all_of_them):
            self._write(facts, self._reads_file)

    def _write(self, facts: dict[str, Any], file: AuditFile | None = None) -> None:
        head = {"service": "api", "action": "audit", "timestamp": datetime.now(UTC).isoformat()}
        # JSON escapes all control characters but this one.
        line = json.dumps(head | facts).replace("\x7f", "\\u007f") + "\n"
        file = file or self._file
        if file is None or not file.write(line.encode()):
            sys.stderr.write(line)
            sys.stderr.flush()


def _facts(scope: Scope, did: str, status: int, headers: list[tuple[bytes, bytes]]) -> dict[str, Any]:
    state = scope.get("state", {})
    client = scope.get("client")
    path_params = scope.get("path_params", {})
    job_id = path_params.get("job_id") or _created(headers)
    named = _named(path_params)
    if did == "read":  # one line for many reads of the same thing
        named = {key: value for key, value in named.items() if key == "asset"}
    return {
        "did": did,
        "status": status,
        "token_name": state.get("token_name", ""),
        "address": client[0] if client else "",
        "request_id": state.get("request_id", ""),
        **({"job_id": job_id[:64]} if job_id else {}),
        **(state.get("changed", {}) if status < 400 else {}),
        **{key: value[:_MOST_CHARACTERS] for key, value in named.items()},
        **({"asked": f"{scope['method']} {scope['path']}"[:_MOST_CHARACTERS]} if did in ("refused", "unknown") else {}),
    }


def _named(path_params: dict[str, str]) -> dict[str, str]:
    """Return what the path of the request names, beside a job."""
    named = {key: str(value) for key, value in path_params.items() if key not in _OF_THE_ADDRESS}
    if "asset" in named:
        named["asset"] = f"{named.pop('kind')}/{named['asset']}"
    if "container" in named:
        named["path"] = f"{named.pop('container')}/{named.pop('blob', '')}"
    return named


def _created(headers: list[tuple[bytes, bytes]]) -> str:
    """The id of the job that an answer tells the place of."""
    for name, value in headers:
        if name == b"location":
            return value.decode("latin-1").rpartition("/")[2]
    return ""


@dataclass(slots=True)
class _Window:
    facts: dict[str, Any]
    ends: float
    count: int = 0


@dataclass(slots=True)
class ReadCounts:
    """Counts reads: one line for each person, thing and kind in five minutes."""

    clock: Callable[[], float] = time.monotonic
    _windows: dict[tuple[str, str, str], _Window] = field(default_factory=dict)

    def add(self, kind: str, facts: dict[str, Any]) -> None:
        """Count a read.

        Args:
            facts: of the first one in its window, which stand in the line.
        """
        thing = str(facts.get("job_id") or facts.get("asset", ""))
        key = (str(facts["token_name"]), thing, kind)
        if (window := self._windows.get(key)) is None:
            window = self._windows[key] = _Window({**facts, "did": "read", "kind": kind}, self.clock() + _WINDOW_S)
        window.count += 1

    def ended(self, *, all_of_them: bool = False) -> Iterator[dict[str, Any]]:
        """The lines of those whose five minutes are over; they count as reported now."""
        now = self.clock()
        is_full = len(self._windows) > _MOST_WINDOWS
        for key, window in list(self._windows.items()):
            if all_of_them or is_full or now >= window.ends:
                del self._windows[key]
                yield {**window.facts, "count": window.count}
            else:
                break  # the others began later
