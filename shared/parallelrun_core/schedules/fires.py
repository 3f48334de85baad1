"""The log of a schedule: what became of the times at which it was due, on the volume that all services share.

schedules/<name>/fires/
    <time>.json                  what became of a time at which it was due: whoever writes it first decides
    <time>.launched              the job is there, so nobody need make it again
    manual-<time>-….json         a job that somebody has asked for
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from typing import Final

from parallelrun_core.documents.codecs import RecordCodec
from parallelrun_core.documents.collection import Documents
from parallelrun_core.documents.file_store import FileStore
from parallelrun_core.documents.store import DocumentExists, DocumentMissing
from parallelrun_core.errors import CorruptLog, NewerSchema, NotFound
from parallelrun_core.schedules.records import FireRecord, stamp, time_of_stamp

KEPT_FIRES: Final = 1000
"""So many of the times at which a schedule was due are remembered."""
_MANUAL: Final = "manual-"
_LAUNCHED: Final = ".launched"


class FireLog:
    """The log of what became of the times of one schedule. Safe to share between threads and processes.

    Args:
        schedule: its name.
        store: the folder `fires` of the schedule, which may not be there.
    """

    def __init__(self, schedule: str, store: FileStore) -> None:
        self.schedule: Final = schedule
        self._fires: Final = Documents(store, RecordCodec(FireRecord), noun=f"fire of {schedule!r}")

    def decide(self, fire: FireRecord, due: datetime) -> FireRecord:
        """Record, durably, what becomes of a time; returns what was recorded first.

        Raises:
            NotFound: the schedule was deleted.
        """
        return fire if self._add(stamp(due), fire) else self._fires.get(stamp(due))

    def record_manual(self, fire: FireRecord, at: datetime) -> None:
        """Record, durably, a job that somebody has asked for at a time.

        Raises:
            NotFound: the schedule was deleted.
        """
        self._add(f"{_MANUAL}{stamp(at)}-{fire.job_id}", fire)

    def find(self, due: datetime) -> FireRecord | None:
        """Return what became of a time; None: nothing yet.

        Raises:
            NewerSchema, CorruptLog: it can't be read.
        """
        return self._fires.find(stamp(due))

    def decided(self) -> list[datetime]:
        """Return the times of which it is recorded what became of them, in order."""
        return sorted(due for due in map(time_of_stamp, self._fires.names()) if due is not None)

    def latest_first(self, before: str = "") -> Iterator[tuple[str, FireRecord]]:
        """Yield what is remembered, the latest first, each with its position; what can't be read is left out.

        Args:
            before: only those after this position. Empty: from the beginning.
        """
        for position, name in sorted(((_position(name), name) for name in self._fires.names()), reverse=True):
            if before and position >= before:
                continue
            with suppress(NotFound, CorruptLog, NewerSchema):
                yield position, self._fires.get(name)

    def note_launched(self, due: datetime) -> None:
        """Note that the job for a time was made."""
        with suppress(DocumentExists, DocumentMissing):
            self._fires.store.create(f"{stamp(due)}{_LAUNCHED}", b"", if_store_exists=True)

    def is_launched(self, due: datetime) -> bool:
        """Return whether the job for a time was made, as far as anybody has noted."""
        return self._fires.store.exists(f"{stamp(due)}{_LAUNCHED}")

    def trim(self) -> None:
        """Forget the oldest times, if many more than `KEPT_FIRES` are remembered."""
        names = self._fires.names()
        if len(names) < KEPT_FIRES + KEPT_FIRES // 10:
            return
        for name in sorted(names, key=_position)[:-KEPT_FIRES]:
            with suppress(DocumentMissing):
                self._fires.store.remove(f"{name}{_LAUNCHED}")
            with suppress(NotFound):
                self._fires.remove(name)

    def _add(self, name: str, fire: FireRecord) -> bool:
        """Write a record if there is none of this name; return whether it was written."""
        try:
            return self._fires.put_if_absent(name, fire, if_store_exists=True)
        except DocumentMissing as error:
            raise NotFound(f"There is no schedule {self.schedule!r} any more.") from error


def _position(name: str) -> str:
    """Return the position of a record: its name as it sorts by time."""
    return name.removeprefix(_MANUAL)
