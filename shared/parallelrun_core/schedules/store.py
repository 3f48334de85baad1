"""The schedules of a cluster, on the volume that all services share.

schedules/<name>/
    revision.<number>.json       as it was defined, enabled or disabled; the highest number counts
    fires/<time>.json            what became of a time at which it was due: whoever writes it first decides
    fires/<time>.launched        the job is there, so nobody need make it again
    fires/manual-<time>-….json   a job that somebody has asked for

Every file is written once. The folder around them has a new time of change after each change: so who fires notices
with one call.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from difflib import get_close_matches
from pathlib import Path
from typing import Final

from parallelrun_core.errors import Conflict, CorruptLog, NewerSchema, NotFound
from parallelrun_core.folder.files import sync_folder, write_once
from parallelrun_core.folder.layout import PRIVATE_FILE, PRIVATE_FOLDER, schedules_of
from parallelrun_core.folder.schema import decode, encode
from parallelrun_core.schedules.records import Fire, Revision, of_stamp, stamp

KEPT: Final = 1000
"""So many of the times at which a schedule was due are remembered."""
_MANUAL: Final = "manual-"


class ScheduleStore:
    """All schedules. Safe to share between threads and processes."""

    def __init__(self, root: Path) -> None:
        self.folder: Final = schedules_of(root)

    def names(self) -> list[str]:
        """Those that there are, in order."""
        try:
            return sorted(each.name for each in self.folder.iterdir() if each.name[0] != ".")
        except FileNotFoundError:
            return []

    def changed(self) -> int:
        """A number that is another one after each change; 0: there was never a schedule."""
        try:
            return self.folder.stat().st_mtime_ns
        except FileNotFoundError:
            return 0

    def of(self, name: str) -> ScheduleFolder:
        """The folder of a schedule, which may not be there."""
        return ScheduleFolder(self.folder / name)

    def get(self, name: str) -> Revision:
        """A schedule as it is now.

        Raises:
            NotFound: there is none of this name.
            NewerSchema, CorruptLog: it can't be read.
        """
        revision = self.of(name).revision()
        if revision is None:
            raise NotFound(f"There is no schedule {name!r}{self._hint(name)}.")
        return revision

    def put(self, name: str, revision: Revision) -> None:
        """Add a revision, durably.

        Raises:
            Conflict: somebody else has just added one.
        """
        self.folder.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
        schedule = self.of(name)
        if revision.number == 1:
            for folder in (schedule.path, schedule.fires_folder):
                folder.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)
        try:
            write_once(schedule.file(revision.number), encode(revision), mode=PRIVATE_FILE)
        except (FileExistsError, FileNotFoundError) as error:
            raise Conflict(
                f"The schedule {name!r} was changed or deleted at the same time. Look at it again."
            ) from error
        for folder in (schedule.path, self.folder, self.folder.parent):
            sync_folder(folder)
        self._ring()

    def remove(self, name: str) -> None:
        """Forget a schedule and what it has done. Its jobs stay.

        Raises:
            NotFound: there is none of this name.
        """
        self.get(name)
        beside = self.folder / f".removed-{secrets.token_hex(6)}"
        try:
            self.of(name).path.rename(beside)
        except FileNotFoundError as error:
            raise NotFound(f"There is no schedule {name!r}.") from error
        sync_folder(self.folder)
        shutil.rmtree(beside, ignore_errors=True)
        self._ring()

    def _ring(self) -> None:
        os.utime(self.folder)

    def _hint(self, missing: str) -> str:
        close = get_close_matches(missing, self.names(), n=1)
        return f": did you mean {close[0]!r}?" if close else ""


@dataclass(frozen=True, slots=True)
class ScheduleFolder:
    """The folder of one schedule."""

    path: Path

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def fires_folder(self) -> Path:
        return self.path / "fires"

    def file(self, number: int) -> Path:
        """Of a revision."""
        return self.path / f"revision.{number}.json"

    def revision(self, number: int | None = None) -> Revision | None:
        """The one with this number, or the last one; None: there is none.

        Raises:
            NewerSchema, CorruptLog: it can't be read.
        """
        if number is None:
            numbers = (each.name.split(".")[1] for each in self.path.glob("revision.*.json"))
            number = max((int(each) for each in numbers if each.isdecimal()), default=0)
        try:
            return decode((file := self.file(number)).read_bytes(), Revision, file)
        except FileNotFoundError:
            return None

    # What became of the times at which it was due

    def decide(self, fire: Fire, due: datetime) -> Fire:
        """Record, durably, what becomes of a time; returns what was recorded first.

        Raises:
            NotFound: the schedule was deleted.
        """
        path = self.fires_folder / f"{stamp(due)}.json"
        try:
            write_once(path, encode(fire), mode=PRIVATE_FILE)
        except FileExistsError:
            return decode(path.read_bytes(), Fire, path)
        except FileNotFoundError as error:
            raise NotFound(f"There is no schedule {self.name!r} any more.") from error
        return fire

    def fire(self, due: datetime) -> Fire | None:
        """What became of a time; None: nothing yet.

        Raises:
            NewerSchema, CorruptLog: it can't be read.
        """
        try:
            return decode((path := self.fires_folder / f"{stamp(due)}.json").read_bytes(), Fire, path)
        except FileNotFoundError:
            return None

    def record_manual(self, fire: Fire, due: datetime) -> None:
        """Record, durably, a job that somebody has asked for.

        Raises:
            NotFound: the schedule was deleted.
        """
        path = self.fires_folder / f"{_MANUAL}{stamp(due)}-{fire.job_id}.json"
        try:
            with suppress(FileExistsError):
                write_once(path, encode(fire), mode=PRIVATE_FILE)
        except FileNotFoundError as error:
            raise NotFound(f"There is no schedule {self.name!r} any more.") from error

    def is_launched(self, due: datetime) -> bool:
        """Whether the job for a time was made, as far as anybody has noted."""
        return (self.fires_folder / f"{stamp(due)}.launched").exists()

    def note_launched(self, due: datetime) -> None:
        """Note that the job for a time was made. After a power cut, it may have to be noted again."""
        with suppress(FileNotFoundError):
            (self.fires_folder / f"{stamp(due)}.launched").touch(PRIVATE_FILE)

    def decided(self) -> list[datetime]:
        """The times of which it is recorded what became of them, in order."""
        stamps = (of_stamp(name.removesuffix(".json")) for name in self._names())
        return sorted(each for each in stamps if each is not None)

    def fires(self, before: str = "") -> Iterator[tuple[str, Fire]]:
        """What is remembered, the latest first, each with its place; what can't be read is left out.

        Args:
            before: only those after this place. Empty: from the beginning.
        """
        for place, name in sorted(((_place(name), name) for name in self._names()), reverse=True):
            if before and place >= before:
                continue
            path = self.fires_folder / name
            with suppress(FileNotFoundError, CorruptLog, NewerSchema):
                yield place, decode(path.read_bytes(), Fire, path)

    def trim(self) -> None:
        """Forget the oldest ones, if many more than `KEPT` are remembered."""
        names = self._names()
        if len(names) < KEPT + KEPT // 10:
            return
        for name in sorted(names, key=_place)[:-KEPT]:
            for path in (self.fires_folder / name, (self.fires_folder / name).with_suffix(".launched")):
                path.unlink(missing_ok=True)

    def _names(self) -> list[str]:
        try:
            names = [each.name for each in self.fires_folder.iterdir()]
        except FileNotFoundError:
            return []
        return [name for name in names if name.endswith(".json") and name[0] != "."]


def _place(name: str) -> str:
    """What sorts the files of fires by their times."""
    return name.removeprefix(_MANUAL).removesuffix(".json")
