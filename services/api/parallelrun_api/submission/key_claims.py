"""Which job an idempotency key stands for: on the shared volume, so that Redis may forget what it likes.

    keys/<date>/<sha256 of the key>    the job, and the request that it was for

A claim gets two names, that of its day and then that of the next one, and the second decides: whoever asks on either
day meets it, also around midnight, by a clock that differs, or when it has to finish what a killed process began. A
folder is removed whole when its day is over and the next one, too. So no claim is ever replaced or removed alone, which
two processes could do to each other's. The dates are UTC, by Redis' clock.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Final

import msgspec

from parallelrun_api.http.errors import KeyReused
from parallelrun_core.folder.files import sync_folder, write_once
from parallelrun_core.folder.layout import key_claims
from parallelrun_core.folder.schema import SCHEMA, decode
from parallelrun_core.service import failpoints

_A_DAY: Final = timedelta(days=1)


class Claim(msgspec.Struct, kw_only=True, frozen=True):
    """What was submitted with a key."""

    schema: int = SCHEMA
    job_id: str
    request_sha256: str
    at: float


class KeyClaims:
    """The claims of at least one day."""

    def __init__(self, root: Path) -> None:
        self._folder = key_claims(root)
        self._durable_on = date.min

    def claim(self, key: str, request_sha256: str, job_id: str, *, now: float) -> str:
        """Let a key stand for a job, durably; returns the job's id, an earlier one if the key was used.

        Args:
            now: by Redis' clock.

        Raises:
            KeyReused: the key was used for a different request.
        """
        today = _day(now)
        self._make_folders(today)
        claim = Claim(job_id=job_id, request_sha256=request_sha256, at=now)
        with suppress(FileExistsError):
            write_once(self._path(today, key), msgspec.json.encode(claim), mode=0o600)
        failpoints.reach("key.written")
        return self.job_of(key, request_sha256, now=now) or job_id

    def job_of(self, key: str, request_sha256: str, *, now: float) -> str | None:
        """The id of the job that a key stands for, if it was used; that job may still have to be created.

        Raises:
            KeyReused: the key was used for a different request.
        """
        claim = self._decided(key, _day(now))
        if claim is None:
            return None
        if claim.request_sha256 != request_sha256:
            raise KeyReused("This Idempotency-Key was used for a different request.")
        return claim.job_id

    def begin_day(self, now: float) -> None:
        """Make the folders that claims need now, and remove the claims that need not be kept any longer."""
        self._make_folders(_day(now))
        for folder in self._folder.iterdir():
            if folder.name < str(_day(now) - _A_DAY):
                shutil.rmtree(folder, ignore_errors=True)

    def _decided(self, key: str, today: date) -> Claim | None:
        first, second = self._path(today, key), self._path(today + _A_DAY, key)
        claim = _read(first)
        if claim is not None and _day(claim.at) < today:
            return claim  # this is its second name
        if claim is not None:
            self._make_folders(today)
            with suppress(FileExistsError):
                os.link(first, second)
            sync_folder(second.parent)  # who made it may have been killed before it did so
        return _read(second)

    def _path(self, day: date, key: str) -> Path:
        return self._folder / str(day) / hashlib.sha256(key.encode()).hexdigest()

    def _make_folders(self, today: date) -> None:
        folders = [self._folder / str(day) for day in (today, today + _A_DAY)]
        if self._durable_on == today and all(folder.is_dir() for folder in folders):
            return
        for folder in (self._folder, *folders):
            folder.mkdir(mode=0o700, exist_ok=True)
        for folder in (self._folder, self._folder.parent):
            sync_folder(folder)  # also when they were there: who made them may have been killed before it did so
        self._durable_on = today


def _read(path: Path) -> Claim | None:
    try:
        return decode(path.read_bytes(), Claim, path)
    except FileNotFoundError:
        return None


def _day(now: float) -> date:
    return datetime.fromtimestamp(now, UTC).date()
