"""The marks of retention in a job's folder, each a small file that is written durably.

archived.json    hidden from lists; the job stays
deleted.json     somebody has deleted it: a sweep removes the folder once it can't be restored any more
notice.json      a rule of the operator will remove it, and when
stripped.json    its part files or the logs of its workers were removed
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from parallelrun_core.documents.schema import SCHEMA, decode, encode
from parallelrun_core.durable_files import replace_durably, sync_folder
from parallelrun_core.errors import CorruptLog, NewerSchema, NotFound
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.layout import DELETED, PRIVATE_FILE

_ARCHIVED: Final = "archived.json"
_NOTICE: Final = "notice.json"
_STRIPPED: Final = "stripped.json"
ALL: Final = (_ARCHIVED, DELETED, _NOTICE, _STRIPPED)


class Mark(msgspec.Struct, kw_only=True, frozen=True):
    """A mark, with the time when it was set, in seconds since the epoch."""

    schema: int = SCHEMA
    at: float
    why: str = ""
    """The rule, of a notice."""
    removed_at: float = 0.0
    """Time when the job is removed, of a notice."""
    kinds: tuple[str, ...] = ()
    """The things that were removed: `parts`, `logs`."""


class Marks:
    """The marks of one job. Writing raises OSError; a mark that can't be read counts as one that was set at 1970."""

    def __init__(self, folder: JobFolder | Path) -> None:
        self._folder: Final = folder.path if isinstance(folder, JobFolder) else folder

    @property
    def is_archived(self) -> bool:
        """Return whether the job is hidden from lists."""
        return (self._folder / _ARCHIVED).exists()

    @property
    def is_deleted(self) -> bool:
        return (self._folder / DELETED).exists()

    @property
    def deleted(self) -> Mark | None:
        return self._read(DELETED)

    @property
    def notice(self) -> Mark | None:
        """The note that a rule will remove the job."""
        return self._read(_NOTICE)

    @property
    def stripped(self) -> Mark | None:
        """The record of what was removed while the job stays."""
        return self._read(_STRIPPED)

    def archive(self, now: float) -> None:
        """Hide the job from lists."""
        self._write(_ARCHIVED, Mark(at=now))

    def delete(self, now: float) -> None:
        """Delete the job: a sweep removes its folder."""
        if not self.is_deleted:
            self._write(DELETED, Mark(at=now))

    def restore(self) -> None:
        """Take back that the job was archived or deleted."""
        self._remove(_ARCHIVED)
        self._remove(DELETED)

    def notify(self, now: float, why: str, removed_at: float) -> None:
        """Note that a rule will remove the job."""
        self._write(_NOTICE, Mark(at=now, why=why, removed_at=removed_at))

    def withdraw_notice(self) -> None:
        """Take the note back."""
        self._remove(_NOTICE)

    def strip(self, now: float, kind: str) -> None:
        """Record that something is removed, before it is."""
        earlier = self.stripped
        removed = {*(earlier.kinds if earlier else ()), kind}
        self._write(_STRIPPED, Mark(at=now, kinds=tuple(sorted(removed))))

    def unstrip(self) -> None:
        """Take back that something is removed, before anything was."""
        self._remove(_STRIPPED)

    @property
    def may_go(self) -> bool:
        """Return whether a user or a rule wants the job removed."""
        return self.is_deleted or (self._folder / _NOTICE).exists()

    def lacks_parts(self) -> bool:
        """Return whether the job can no longer be resumed or retried, nor its rows be taken over."""
        stripped = self.stripped
        return stripped is not None and "parts" in stripped.kinds

    def _read(self, name: str) -> Mark | None:
        path = self._folder / name
        try:
            return decode(path.read_bytes(), Mark, path)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (CorruptLog, NewerSchema):
            return Mark(at=0.0)

    def _write(self, name: str, mark: Mark) -> None:
        replace_durably(self._folder / name, encode(mark), mode=PRIVATE_FILE)

    def _remove(self, name: str) -> None:
        with suppress(FileNotFoundError):
            (self._folder / name).unlink()
            sync_folder(self._folder)


def check_not_deleted(folder: JobFolder) -> None:
    """Make sure that nobody has deleted a job.

    Raises:
        NotFound: somebody has; says how to get it back.
    """
    if Marks(folder).is_deleted:
        raise NotFound(f"Job {folder.job_id} was deleted. `parallelrun job restore {folder.job_id}` brings it back.")
