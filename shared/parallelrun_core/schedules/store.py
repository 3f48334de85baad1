"""The schedules of a cluster, on the volume that all services share.

schedules/changes.json           another one after each change, so that who fires notices with one look
schedules/<name>/
    revision.<number>.json       as it was defined, enabled or disabled; the highest number counts
    fires/<time>.json            what became of a time at which it was due: whoever writes it first decides
    fires/<time>.launched        the job is there, so nobody need make it again
    fires/manual-<time>-….json   a job that somebody has asked for

Every file below a schedule is written once.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from parallelrun_core.documents.codecs import FieldsCodec, RecordCodec
from parallelrun_core.documents.collection import Documents, no_such
from parallelrun_core.documents.file_store import FileStore
from parallelrun_core.documents.store import DocumentExists, DocumentMissing
from parallelrun_core.errors import Conflict, CorruptLog, NewerSchema, NotFound
from parallelrun_core.layout import schedules_of
from parallelrun_core.schedules.records import FireRecord, Revision, of_stamp, stamp

KEPT: Final = 1000
"""So many of the times at which a schedule was due are remembered."""
_MANUAL: Final = "manual-"
_REVISION: Final = "revision."
_LAUNCHED: Final = ".launched"
_CHANGES: Final = "changes"


class ScheduleStore:
    """All schedules. Safe to share between threads and processes."""

    def __init__(self, root: Path) -> None:
        folder = schedules_of(root)
        self._store: Final = FileStore(folder.parent, folder.name)
        self._changes: Final = Documents(
            self._store, FieldsCodec[dict[str, Any]](dict, dict), noun="record of changes of schedules"
        )

    def names(self) -> list[str]:
        """The names of all schedules, in order."""
        return self._store.children()

    def last_change(self) -> str:
        """Differs after each change of any schedule; empty: there was never a schedule.

        What a file has in it, and not when its folder was changed: NFS clients hold the times of folders for seconds,
        and ask anew when a file is opened.
        """
        with suppress(CorruptLog):
            return str((self._changes.find(_CHANGES) or {}).get("last", ""))
        return ""

    def of(self, name: str) -> ScheduleFolder:
        """Return what is stored of a schedule, which may not be there."""
        return ScheduleFolder(name, self._store.child(name))

    def get(self, name: str) -> Revision:
        """Return a schedule as it is now.

        Raises:
            NotFound: there is none of this name.
            NewerSchema, CorruptLog: it can't be read.
        """
        revision = self.of(name).revision() if name in (names := self.names()) else None
        if revision is None:
            raise no_such("schedule", name, names)
        return revision

    def put(self, name: str, revision: Revision) -> None:
        """Add a revision, durably.

        Raises:
            Conflict: somebody else has just added one.
        """
        if not self.of(name).add(revision):
            raise Conflict(f"The schedule {name!r} was changed or deleted at the same time. Look at it again.")
        self._record_change()

    def remove(self, name: str) -> None:
        """Remove a schedule and what it has done. Its jobs stay.

        Raises:
            NotFound: there is none of this name.
        """
        self.get(name)
        try:
            self._store.remove_child(name)
        except DocumentMissing as error:
            raise no_such("schedule", name, self.names()) from error
        self._record_change()

    def _record_change(self) -> None:
        self._changes.put(_CHANGES, {"last": secrets.token_hex(8)})


class ScheduleFolder:
    def __init__(self, name: str, store: FileStore) -> None:
        self.name: Final = name
        self._revisions: Final = Documents(store, RecordCodec(Revision), noun="revision")
        self._fires: Final = Documents(store.child("fires"), RecordCodec(FireRecord), noun=f"fire of {name!r}")

    def add(self, revision: Revision) -> bool:
        """Add a revision, durably; return whether nobody else has added that one, or removed the schedule."""
        is_first = revision.number == 1
        if is_first:
            self._fires.store.make()
        with suppress(DocumentMissing):
            return self._revisions.put_if_absent(
                f"{_REVISION}{revision.number}", revision, if_store_exists=not is_first
            )
        return False

    def revision(self, number: int | None = None) -> Revision | None:
        """Return the revision with this number, or the last one; None: there is none.

        Raises:
            NewerSchema, CorruptLog: it can't be read.
        """
        if number is None:
            numbers = (name.removeprefix(_REVISION) for name in self._revisions.names() if name.startswith(_REVISION))
            number = max((int(each) for each in numbers if each.isdecimal()), default=0)
        return self._revisions.find(f"{_REVISION}{number}")

    # What became of the times at which it was due

    def decide(self, fire: FireRecord, due: datetime) -> FireRecord:
        """Record, durably, what becomes of a time; returns what was recorded first.

        Raises:
            NotFound: the schedule was deleted.
        """
        return fire if self._add(stamp(due), fire) else self._fires.get(stamp(due))

    def fire(self, due: datetime) -> FireRecord | None:
        """Return what became of a time; None: nothing yet.

        Raises:
            NewerSchema, CorruptLog: it can't be read.
        """
        return self._fires.find(stamp(due))

    def record_manual(self, fire: FireRecord, due: datetime) -> None:
        """Record, durably, a job that somebody has asked for.

        Raises:
            NotFound: the schedule was deleted.
        """
        self._add(f"{_MANUAL}{stamp(due)}-{fire.job_id}", fire)

    def is_launched(self, due: datetime) -> bool:
        """Return whether the job for a time was made, as far as anybody has noted."""
        return self._fires.store.exists(f"{stamp(due)}{_LAUNCHED}")

    def note_launched(self, due: datetime) -> None:
        """Note that the job for a time was made."""
        with suppress(DocumentExists, DocumentMissing):
            self._fires.store.create(f"{stamp(due)}{_LAUNCHED}", b"", if_store_exists=True)

    def decided(self) -> list[datetime]:
        """The times of which it is recorded what became of them, in order."""
        return sorted(due for due in map(of_stamp, self._fires.names()) if due is not None)

    def fires(self, before: str = "") -> Iterator[tuple[str, FireRecord]]:
        """Yield what is remembered, the latest first, each with its position; what can't be read is left out.

        Args:
            before: only those after this position. Empty: from the beginning.
        """
        for position, name in sorted(((_position(name), name) for name in self._fires.names()), reverse=True):
            if before and position >= before:
                continue
            with suppress(NotFound, CorruptLog, NewerSchema):
                yield position, self._fires.get(name)

    def trim(self) -> None:
        """Forget the oldest ones, if many more than `KEPT` are remembered."""
        names = self._fires.names()
        if len(names) < KEPT + KEPT // 10:
            return
        for name in sorted(names, key=_position)[:-KEPT]:
            with suppress(DocumentMissing):
                self._fires.store.remove(f"{name}{_LAUNCHED}")
            with suppress(NotFound):
                self._fires.remove(name)

    def _add(self, name: str, fire: FireRecord) -> bool:
        try:
            return self._fires.put_if_absent(name, fire, if_store_exists=True)
        except DocumentMissing as error:
            raise NotFound(f"There is no schedule {self.name!r} any more.") from error


def _position(name: str) -> str:
    """Sorts the names of fires by their times."""
    return name.removeprefix(_MANUAL)
