"""Claims of idempotency keys: the job that each stands for, on the shared volume, so that Redis may forget what it
likes.

    keys/<date>/<sha256 of the key>    the job, and the request that it was for

A claim gets two names, that of its day and then that of the next one, and the second decides: whoever asks on either
day meets it, also around midnight, by a clock that differs, or when it has to finish what a killed process began. Only
the second has to outlast a power cut: the first is for those who claim the key at the same time. A
folder is removed whole when its day is over and the next one, too. So no claim is ever replaced or removed alone, which
two processes could do to each other's. The dates are UTC, by Redis' clock.
"""

from __future__ import annotations

import hashlib
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Final

import msgspec

from parallelrun_api.http.errors import KeyReused
from parallelrun_api.people.person import CURRENT
from parallelrun_core.documents.codecs import RecordCodec
from parallelrun_core.documents.collection import Documents
from parallelrun_core.documents.file_store import FileStore
from parallelrun_core.documents.schema import SCHEMA
from parallelrun_core.documents.store import DocumentMissing
from parallelrun_core.layout import key_claims
from parallelrun_core.service import failpoints

_A_DAY: Final = timedelta(days=1)


class KeyClaim(msgspec.Struct, kw_only=True, frozen=True):
    """The request that was submitted with a key."""

    schema: int = SCHEMA
    job_id: str
    request_sha256: str
    at: float


class KeyClaims:
    """The claims of at least one day."""

    def __init__(self, root: Path) -> None:
        folder = key_claims(root)
        self._store: Final = FileStore(folder.parent, folder.name)
        self._undurable_store: Final = FileStore(folder.parent, folder.name, durable=False)
        self._days: dict[tuple[date, bool], Documents[KeyClaim]] = {}

    def claim(self, key: str, request_sha256: str, job_id: str, *, now: float) -> str:
        """Let a key stand for a job, durably; returns the job's id, an earlier one if the key was used.

        Args:
            now: by Redis' clock.

        Raises:
            KeyReused: the key was used for a different request.
        """
        claim = KeyClaim(job_id=job_id, request_sha256=request_sha256, at=now)
        self._claims(_day(now), durable=False).put_if_absent(_digest(key), claim)
        failpoints.reach("key.written")
        return self.job_of(key, request_sha256, now=now) or job_id

    def job_of(self, key: str, request_sha256: str, *, now: float) -> str | None:
        """The id of the job that a key stands for, if it was used; that job may still have to be created.

        Raises:
            KeyReused: the key was used for a different request.
        """
        claim = self._decided(_digest(key), _day(now))
        if claim is None:
            return None
        if claim.request_sha256 != request_sha256:
            raise KeyReused("This Idempotency-Key was used for a different request.")
        return claim.job_id

    def begin_day(self, now: float) -> None:
        """Make the stores that claims need now, and remove the claims that need not be kept any longer."""
        today = _day(now)
        self._claims(today, durable=False).store.make()
        self._claims(today + _A_DAY).store.make()
        for name in self._store.children():
            if name < str(today - _A_DAY):
                with suppress(DocumentMissing):
                    self._store.remove_child(name)

    def _decided(self, digest: str, today: date) -> KeyClaim | None:
        first = self._claims(today)
        claim = first.find(digest)
        second = self._claims((_day(claim.at) if claim else today) + _A_DAY)
        # Also if it is there: who wrote it may have been killed before its sync. The content was synced before that.
        if claim is not None and second.copy_if_absent(first, digest):
            return claim
        return second.find(digest)

    def _claims(self, day: date, *, durable: bool = True) -> Documents[KeyClaim]:
        """The claims under a date. durable: False: a power cut may take what is put here."""
        claims = self._days.get((day, durable))
        if claims is None:
            store = (self._store if durable else self._undurable_store).child(str(day))
            claims = Documents(store, RecordCodec(KeyClaim), noun="claim of a key", suffix="")
            recent = {key: each for key, each in self._days.items() if key[0] >= day - _A_DAY}
            self._days = {**recent, (day, durable): claims}  # a new mapping, as threads share this one
        return claims


def _digest(key: str) -> str:
    """Return what a key is called on disk. Each person has keys of their own."""
    owner = CURRENT.get().owner
    return hashlib.sha256((f"{owner}\0{key}" if owner else key).encode()).hexdigest()


def _day(now: float) -> date:
    return datetime.fromtimestamp(now, UTC).date()
