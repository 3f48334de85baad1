"""Whether a job can use a path, found out when it is submitted: quickly, with the rules by which files are listed."""

from __future__ import annotations

import os
import pwd
import shlex
import stat
import tempfile
import time
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import Final

from parallelrun_core.paths import within
from parallelrun_core.storage.globs import START, Pattern, split_existing
from parallelrun_core.storage.interface import Trouble
from parallelrun_core.storage.local.listing import parted

_MAX_FOLDERS: Final = 100_000
_MAX_ENTRIES: Final = 1_000_000
_MAX_SEARCH_S: Final = 2.0
"""What is searched for a first file; whether there is one after so much is left to the master."""
_PAGE: Final = 1000
_NOTHING_TO_CUT: Final = "there is nothing to cut into mini-batches"


def place_trouble(path: str, roots: Sequence[Path]) -> Trouble | None:
    """See `interface.Storage`."""
    if not path.startswith("/"):
        message = f"{path!r} is relative, but there is no job file to resolve it against"
        return Trouble(message, "give an absolute path on the server")
    try:
        is_allowed = within(Path(path), roots)
    except (OSError, RuntimeError, ValueError) as error:
        return Trouble(f"{path[:200]!r} can't be used as a path: {error}")
    if not is_allowed:
        hint = f"allowed_roots: {':'.join(map(str, roots))}"
        return Trouble(f"{path!r} is outside of the folders that jobs may use", hint)
    return None


def input_trouble(
    path: str, *, is_one_file: bool = False, clock: Callable[[], float] = time.monotonic
) -> Trouble | None:
    """See `interface.Storage`. The clock says how long the search takes."""
    start, below = split_existing(path)
    try:
        mode = os.stat(start).st_mode
        if stat.S_ISDIR(mode):
            return _trouble_in_folder(path, start, below, clock, is_one_file=is_one_file)
        if below:
            return Trouble(f"there is no folder {start!r}")
        return None if stat.S_ISREG(mode) else Trouble(f"{path!r} is neither a file nor a folder")
    except (FileNotFoundError, NotADirectoryError):
        return Trouble(f"there is no file or folder {start!r}")
    except PermissionError as error:
        return _denied(path, os.fsdecode(error.filename or start))
    except OSError as error:
        return Trouble(f"{path[:200]!r} can't be read: {error.strerror}")


def _trouble_in_folder(
    path: str, start: str, below: list[str], clock: Callable[[], float], *, is_one_file: bool
) -> Trouble | None:
    if is_one_file and not below:
        return Trouble(f"{path!r} is a folder", "type: uri_folder")
    search = _Search(start, below, clock)
    if search.has_file():
        return None
    if search.matching_folder:
        folder = os.fsdecode(search.matching_folder)
        hint = f"for all files below such folders, give {path.rstrip('/') + '/**'!r}"
        return Trouble(f"{path!r} matches no file, only folders such as {folder!r}", hint)
    return Trouble(f"no file matches {path!r}" if below else f"the folder {path!r} has no files", _NOTHING_TO_CUT)


class _Search:
    """Searches for a first file below a folder, as it will be listed."""

    def __init__(self, start: str, below: list[str], clock: Callable[[], float]) -> None:
        self._start = os.fsencode(start)
        self._pattern = Pattern(below) if below else None
        self._clock = clock
        self.matching_folder = b""
        """One that matches to the end, where only files count."""

    def has_file(self) -> bool:
        """Whether there is one; true also if it would take too long to be sure that there is none, or a folder below
        the start lets nobody look into it.

        Raises:
            OSError: a folder can't be read.
        """
        pending, folders, entries = [(self._start, START)], 0, 0
        end = self._clock() + _MAX_SEARCH_S
        while pending:
            if self._clock() > end:
                return True
            folder, states = pending.pop()
            try:
                with os.scandir(folder) as scan:
                    while some := list(islice(scan, _PAGE)):
                        entries += len(some)
                        files, below = parted(some, self._pattern, states)
                        folders += len(below)
                        is_over = folders > _MAX_FOLDERS or entries > _MAX_ENTRIES or self._clock() > end
                        if files or is_over:
                            return True
                        for name in below:
                            path, after = os.path.join(folder, name), states
                            if self._pattern is not None:
                                if not self.matching_folder and self._pattern.is_match(states, name):
                                    self.matching_folder = path
                                after = self._pattern.enter(states, name)
                            if after:
                                pending.append((path, after))
            except (FileNotFoundError, NotADirectoryError):
                if folder == self._start:
                    raise
            except PermissionError:
                if folder == self._start:
                    raise
                return True
        return False


def output_trouble(folder: Path) -> Trouble | None:
    """See `interface.Storage`. Leaves nothing behind."""
    existing = folder
    while not os.path.lexists(existing):
        existing = existing.parent
    try:
        with tempfile.TemporaryFile(dir=existing):
            return None
    except NotADirectoryError:
        return Trouble(f"{str(existing)!r} is not a folder")
    except OSError as error:
        return Trouble(f"{str(existing)!r} can't be written to: {error.strerror}")


def _denied(path: str, refused: str) -> Trouble:
    """Why something can't be read: which folder lets whom not in."""
    closed = next((str(each) for each in reversed(Path(refused).parents) if not _is_allowed(each, os.X_OK)), None)
    verb, right, folder = ("enter", "x", closed) if closed is not None else ("list", "rx", refused)
    what = "folder" if closed is not None or os.path.isdir(refused) else "file"
    uid = os.geteuid()
    try:
        who = f"user {pwd.getpwuid(uid).pw_name!r} (uid {uid})"
    except KeyError:
        who = f"the user with uid {uid}"
    return Trouble(
        f"{path!r} can't be read: permission denied: {who} may not {verb} the {what} {folder!r}",
        f"as in: chmod o+{right} {shlex.quote(str(folder))}; or run ParallelRun as a user who has that right",
    )


def _is_allowed(folder: Path, right: int) -> bool:
    return os.access(folder, right, effective_ids=os.access in os.supports_effective_ids)
