"""The schedules of a cluster, on the volume that all services share.

schedules/changes.json           a new value after each change, so that masters read one file to notice it
schedules/<name>/
    revision.<number>.json       as it was defined, enabled or disabled; the highest number counts
    fires/…                      what became of the times at which it was due (fires.py)

Every file below a schedule is written once. A process that dies leaves a schedule as it was, or as it is to be; if it
dies before `changes.json` is written, masters notice within a minute. The folder of a first revision that did not come
is no schedule, and the next one of its name takes it.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from parallelrun_core.documents.codecs import FieldsCodec, RecordCodec
from parallelrun_core.documents.collection import Documents, no_such
from parallelrun_core.documents.file_store import FileStore
from parallelrun_core.documents.store import DocumentMissing
from parallelrun_core.errors import Conflict, CorruptLog, NewerSchema, NotFound
from parallelrun_core.layout import schedules_of
from parallelrun_core.schedules.fires import FireLog
from parallelrun_core.schedules.records import Revision

_REVISION: Final = "revision."
_CHANGES: Final = "changes"
_FIRES: Final = "fires"


class ScheduleStore:
    """All schedules. Safe to share between threads and processes.

    Args:
        shows: whether errors may name what an owner has; None: whoever gets them may see all.
    """

    def __init__(self, root: Path, *, shows: Callable[[str], bool] | None = None) -> None:
        self._shows: Final = shows
        folder = schedules_of(root)
        self._store: Final = FileStore(folder.parent, folder.name)
        self._changes: Final = Documents(
            self._store, FieldsCodec[dict[str, Any]](dict, dict), noun="record of changes of schedules"
        )

    def names(self) -> list[str]:
        """Return the names of all schedules, in order."""
        return [name for name in self._store.children() if self._last_number(name)]

    def get(self, name: str) -> Revision:
        """Return a schedule as it is now.

        Raises:
            NotFound: there is none of this name; says which there are.
            NewerSchema, CorruptLog: it can't be read.
        """
        revision = self.find(name)
        if revision is None:
            raise self._no_such(name)
        return revision

    def _no_such(self, name: str) -> NotFound:
        names = self.names()
        return no_such("schedule", name, names if self._shows is None else list(filter(self._is_shown, names)))

    def _is_shown(self, name: str) -> bool:
        with suppress(NewerSchema, CorruptLog):
            revision = self.find(name)
            return revision is not None and (self._shows is None or self._shows(revision.owner))
        return False

    def find(self, name: str, number: int | None = None) -> Revision | None:
        """Return a schedule as it is now, or as its revision of this number has it; None: there is none.

        Raises:
            NewerSchema, CorruptLog: it can't be read.
        """
        if not self._has(name):
            return None
        number = self._last_number(name) if number is None else number
        return self._revisions(name).find(f"{_REVISION}{number}")

    def put(self, name: str, revision: Revision) -> None:
        """Add a revision of a schedule, durably and as a whole. The first one makes the schedule.

        Raises:
            Conflict: somebody else has just added one of this number, or removed the schedule, and perhaps made another
                one of this name.
            NewerSchema, CorruptLog: the revision before can't be read.
        """
        with self._store.locked():  # or another schedule could get this name, and the revision
            if revision.number == 1:
                self._store.child(name).child(_FIRES).make()
            else:
                before = self.find(name, revision.number - 1)
                if before is None or before.schedule_id != revision.schedule_id:
                    raise _changed(name)
            if not self._revisions(name).put_if_absent(f"{_REVISION}{revision.number}", revision):
                raise _changed(name)
        self._record_change()  # which takes the lock itself

    def remove(self, name: str) -> None:
        """Remove a schedule and what became of its times, all at once. Its jobs stay.

        Raises:
            NotFound: there is none of this name.
        """
        if not self._has(name):  # one that can't be read is there, and can be removed
            raise self._no_such(name)
        try:
            self._store.remove_child(name)
        except DocumentMissing as error:
            raise self._no_such(name) from error
        self._record_change()

    def fires(self, name: str) -> FireLog:
        """Return what became of the times at which a schedule was due. The schedule may not be there."""
        return FireLog(name, self._store.child(name).child(_FIRES))

    def last_change(self) -> str:
        """Return a text that differs after each change of any schedule; empty: there was never a schedule, or nobody
        here can read it.

        It is read from a file, as the times of folders won't do: NFS clients hold those for seconds, and ask anew when
        a file is opened.
        """
        with suppress(CorruptLog, NewerSchema):
            return str((self._changes.find(_CHANGES) or {}).get("last", ""))
        return ""

    def _has(self, name: str) -> bool:
        """Return whether there is a schedule of this name, readable or not."""
        return name in self._store.children() and self._last_number(name) > 0

    def _last_number(self, name: str) -> int:
        """Return the number of the revision that counts; 0: there is none, and so no schedule."""
        numbers = (each.removeprefix(_REVISION) for each in self._revisions(name).names() if each.startswith(_REVISION))
        return max((int(each) for each in numbers if each.isdecimal()), default=0)

    def _revisions(self, name: str) -> Documents[Revision]:
        return Documents(self._store.child(name), RecordCodec(Revision), noun="revision")

    def _record_change(self) -> None:
        self._changes.put(_CHANGES, {"last": secrets.token_hex(8)})


def _changed(name: str) -> Conflict:
    return Conflict(f"The schedule {name!r} was changed or deleted at the same time. Look at it again.")
