"""Checks that a job can use a path, made when it is submitted: quickly, with the rules by which files are listed."""

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

from parallelrun_core.errors import UnsafePath
from parallelrun_core.storage.globs import START, Pattern, as_literal, split_existing
from parallelrun_core.storage.interface import PathProblem
from parallelrun_core.storage.local.listing import opened_folder, parted
from parallelrun_core.storage.path_rule import PathRule

_MAX_FOLDERS: Final = 100_000
_MAX_ENTRIES: Final = 1_000_000
_MAX_SEARCH_S: Final = 2.0
"""What is searched for a first file; whether there is one after so much is left to the master."""
_PAGE: Final = 1000
_NOTHING_TO_CUT: Final = "there is nothing to cut into mini-batches"


def place_trouble(
    path: str, rule: PathRule, *, pattern: Sequence[str] | None = None, is_written: bool = False
) -> PathProblem | None:
    if not path.startswith("/"):
        message = f"{path!r} is relative, but there is no job file to resolve it against"
        return PathProblem(message, "give an absolute path on the server")
    try:
        refusal = rule.refusal(path, pattern=pattern, is_written=is_written)
    except (OSError, ValueError) as error:
        return PathProblem(f"{path[:200]!r} can't be used as a path: {error}")
    return refusal and PathProblem(*refusal)


def input_trouble(
    path: str,
    *,
    is_one_file: bool = False,
    rule: PathRule | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> PathProblem | None:
    start, below = split_existing(path)
    try:
        return _trouble_at(path, _Search(start, below, rule, clock), is_one_file=is_one_file)
    except UnsafePath as error:
        (problem,) = error.problems
        return PathProblem(problem.message, problem.hint)
    except (FileNotFoundError, NotADirectoryError):
        return PathProblem(f"there is no file or folder {start!r}")
    except PermissionError as error:
        return _denied(path, os.fsdecode(error.filename or start))
    except OSError as error:
        return PathProblem(f"{path[:200]!r} can't be read: {error.strerror}")


def _trouble_at(path: str, search: _Search, *, is_one_file: bool) -> PathProblem | None:
    mode = os.stat(search.start).st_mode
    if stat.S_ISDIR(mode):
        if is_one_file and not search.has_pattern:
            return PathProblem(f"{path!r} is a folder", "type: uri_folder")
        return _trouble_in_folder(path, search)
    if search.has_pattern:
        return PathProblem(f"there is no folder {os.fsdecode(search.start)!r}")
    return None if stat.S_ISREG(mode) else PathProblem(f"{path!r} is neither a file nor a folder")


def _trouble_in_folder(path: str, search: _Search) -> PathProblem | None:
    if search.has_file():
        return None
    if search.matching_folder:
        folder = os.fsdecode(search.matching_folder)
        hint = f"for all files below such folders, give {path.rstrip('/') + '/**'!r}"
        return PathProblem(f"{path!r} matches no file, only folders such as {folder!r}", hint)
    if not search.has_pattern:
        return PathProblem(f"the folder {path!r} has no files", _NOTHING_TO_CUT)
    if "[" in path:
        message = f"no file matches {path!r}, in which [ ] is a pattern for one of the characters between them"
        return PathProblem(message, f"for a name that has brackets, write {as_literal(path)!r}")
    return PathProblem(f"no file matches {path!r}", _NOTHING_TO_CUT)


class _Search:
    """Searches for a first file below a folder, as it will be listed."""

    def __init__(self, start: str, below: list[str], rule: PathRule | None, clock: Callable[[], float]) -> None:
        self.start = os.fsencode(start)
        self._pattern = Pattern(below) if below else None
        self._rule = rule
        self._clock = clock
        self.matching_folder = b""
        """One that matches to the end, where only files count."""

    @property
    def has_pattern(self) -> bool:
        return self._pattern is not None

    def has_file(self) -> bool:
        """Return whether there is one; true also if it would take too long to be sure that there is none, or a folder
        below the start lets nobody look into it.

        Raises:
            OSError: a folder can't be read.
            UnsafePath: the rule refuses what a link leads to that was met before a file.
        """
        pending, folders, entries = [(self.start, START)], 0, 0
        end = self._clock() + _MAX_SEARCH_S
        while pending:
            if self._clock() > end:
                return True
            folder, states = pending.pop()
            try:
                with opened_folder(folder, self._rule) as (at, _), os.scandir(at) as scan:
                    while some := list(islice(scan, _PAGE)):
                        entries += len(some)
                        files, below = parted(folder, some, self._pattern, states, self._rule)
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
                if folder == self.start:
                    raise
            except PermissionError:
                if folder == self.start:
                    raise
                return True
        return False


def output_trouble(folder: Path) -> PathProblem | None:
    existing = folder
    while not os.path.lexists(existing):
        existing = existing.parent
    try:
        with tempfile.TemporaryFile(dir=existing):
            return None
    except NotADirectoryError:
        return PathProblem(f"{str(existing)!r} is not a folder")
    except OSError as error:
        return PathProblem(f"{str(existing)!r} can't be written to: {error.strerror}")


def _denied(path: str, refused: str) -> PathProblem:
    """Why something can't be read: which folder lets whom not in."""
    closed = next((str(each) for each in reversed(Path(refused).parents) if not _is_allowed(each, os.X_OK)), None)
    verb, right, folder = ("enter", "x", closed) if closed is not None else ("list", "rx", refused)
    kind = "folder" if closed is not None or os.path.isdir(refused) else "file"
    uid = os.geteuid()
    try:
        who = f"user {pwd.getpwuid(uid).pw_name!r} (uid {uid})"
    except KeyError:
        who = f"the user with uid {uid}"
    return PathProblem(
        f"{path!r} can't be read: permission denied: {who} may not {verb} the {kind} {folder!r}",
        f"as in: chmod o+{right} {shlex.quote(str(folder))}; or run ParallelRun as a user who has that right",
    )


def _is_allowed(folder: Path, right: int) -> bool:
    return os.access(folder, right, effective_ids=os.access in os.supports_effective_ids)
