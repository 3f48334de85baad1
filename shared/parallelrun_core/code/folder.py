"""The files of a folder that are its code: all but what tools and runs leave there, and what its ignore file names.

What an image is built of is taken in the same way, with an ignore file of its own (`context.py`).
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final, Protocol

from parallelrun_core.code.ignore_file import ignore_lines
from parallelrun_core.errors import InvalidInput, UnsafePath
from parallelrun_core.untrusted.paths import opened_path, real_path

if TYPE_CHECKING:
    from parallelrun_core.storage.path_rule import PathRule

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_FILE: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
SKIPPED_FOLDERS: Final = frozenset({"__pycache__", ".git", ".venv", ".ipynb_checkpoints", ".parallelrun"})
# What a folder that isn't code holds: an environment of venv or conda, the working data or the logs of an earlier run.
_SIGNS: Final = ("pyvenv.cfg", "conda-meta", ".parallelrun", "logs/.parallelrun")
IGNORE_FILES: Final = (".amlignore", ".gitignore")
"""The first that is there counts, and only at the top of the folder, as in Azure ML."""
_MOST_DEEP: Final = 100
"""What it takes to try the pattern of an ignore file grows with the depth of a file."""
LEAVE_OUT_HINT: Final = "a line in .amlignore, else .gitignore, at the top of the code leaves out what isn't code"


FilesBelow = Iterator[tuple[tuple[str, ...], int, IO[bytes]]]
"""Where each file is below a folder, its mode, and the file, open until the next one."""


class Ignored(Protocol):
    def match_file(self, file: str) -> bool:
        """Return whether this is left out: a file by its path below the folder, or a folder with
        all in it, with a `/`.
        """
        ...


class NothingIgnored:
    """A rule that leaves nothing out."""

    def match_file(self, _: str) -> bool:
        return False


def code_files(folder: Path, leave_out: Path | None = None, rule: PathRule | None = None) -> FilesBelow:
    """The files that make up a code folder.

    Args:
        leave_out: a folder that may be below it and isn't code.
        rule: what the folder itself is checked by, once it is open.

    Raises:
        UnsafePath: a link leads out of the folder, or to one above itself; or the rule refuses the folder.
        InvalidInput: there is no such folder; the ignore file has a pattern that isn't one.
    """
    with opened_top(folder, "/code", rule) as top:
        yield from files_below(top, ignored_in(top), leave_out)


@contextmanager
def opened_top(folder: Path, pointer: str, rule: PathRule | None = None) -> Iterator[int]:
    """Open a folder that a job names, once: all that is read of it is read beneath this descriptor.

    Raises:
        InvalidInput: there is no such folder, or the rule refuses what was opened.
    """
    try:
        top = os.open(folder, _FOLDER)
    except OSError as error:
        raise InvalidInput.at(pointer, f"there is no folder {str(folder)!r}") from error
    try:
        if rule is not None:
            try:
                rule.check_opened(top, os.fsencode(folder))
            except UnsafePath as error:
                error.replace_problems(lambda problem: replace(problem, pointer=pointer))
                raise
        yield top
    finally:
        os.close(top)


def files_below(top: int, ignored: Ignored, leave_out: Path | None = None) -> FilesBelow:
    """The files below an open folder but for what is ignored. Links are followed only within it.

    Each folder and file is opened beneath the one above it, and then it is looked at where it is: a link that is put in
    its place before or afterwards leads nowhere else.

    Raises:
        UnsafePath: a link leads out of the folder, or to one above itself.
        InvalidInput: a folder is too deep.
    """
    left_out = _identity_at(leave_out) if leave_out else None
    yield from _Walk(real_path(top), ignored, left_out).below(top, (), (_identity(top),))


class _Walk:
    """Goes through a folder by descriptors."""

    def __init__(self, root: str, ignored: Ignored, left_out: tuple[int, int] | None) -> None:
        self._root = root
        self._below = os.path.join(root, "")
        self._ignored = ignored
        self._left_out = left_out

    def below(self, at: int, parts: tuple[str, ...], above: tuple[tuple[int, int], ...]) -> FilesBelow:
        """The files of one folder, and of those below it.

        Args:
            parts: where the folder is.
            above: device and inode of it, and of all above it.
        """
        if len(parts) > _MOST_DEEP:
            raise InvalidInput.at(
                "/code", f"{'/'.join(parts[:3])}/… goes deeper than {_MOST_DEEP} folders", LEAVE_OUT_HINT
            )
        names, folders = _names_in(at)
        for name in names:
            path = "/".join((*parts, name))
            if not self._ignored.match_file(path) and (fd := self._opened(at, name, path)) is not None:
                with open(fd, "rb") as file:
                    if stat.S_ISREG(mode := os.fstat(fd).st_mode):
                        yield (*parts, name), mode, file
        for name in folders:
            path = "/".join((*parts, name))
            if name in SKIPPED_FOLDERS or self._ignored.match_file(f"{path}/"):
                continue
            if (fd := self._opened(at, name, path, _FOLDER)) is None:
                continue
            try:
                identity = _identity(fd)
                if identity == self._left_out or any(_is_there(fd, sign) for sign in _SIGNS):
                    continue
                if identity in above:
                    raise UnsafePath.at("/code", f"{path} is a link to a folder above it", LEAVE_OUT_HINT)
                yield from self.below(fd, (*parts, name), (*above, identity))
            finally:
                os.close(fd)

    def _opened(self, at: int, name: str, path: str, flags: int = _FILE) -> int | None:
        """The descriptor of what has this name; None: it has gone, or is something else by now.

        Raises:
            UnsafePath: it is outside of the folder.
            OSError: it can't be read.
        """
        try:
            fd = os.open(name, flags, dir_fd=at)
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            self._refuse_link_outside(at, name, path)
            return None
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise UnsafePath.at("/code", f"{path} is a link to itself") from error
            if error.errno == errno.ENXIO:  # a socket
                return None
            self._refuse_link_outside(at, name, path)
            raise
        if not os.path.join(real_path(fd), "").startswith(self._below):
            os.close(fd)
            raise _outside(path)
        return fd

    def _refuse_link_outside(self, at: int, name: str, path: str) -> None:
        """Say of a link that can't be opened whether it is its place that is wrong: nothing is read by this."""
        where = opened_path(at) / name
        if where.is_symlink() and not where.resolve().is_relative_to(self._root):
            raise _outside(path)


def _names_in(at: int) -> tuple[list[str], list[str]]:
    """The names of what is in an open folder, sorted: of all else, and of folders and links to folders."""
    names: list[str] = []
    folders: list[str] = []
    with os.scandir(at) as entries:
        for entry in entries:
            try:
                is_folder = entry.is_dir()
            except OSError:  # a link to itself
                is_folder = False
            (folders if is_folder else names).append(entry.name)
    return sorted(names), sorted(folders)


def _identity(fd: int) -> tuple[int, int]:
    status = os.fstat(fd)
    return status.st_dev, status.st_ino


def _identity_at(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _is_there(at: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=at)
    except OSError:
        return False
    return True


def ignored_in(top: int) -> Ignored:
    """Read the ignore file of an open folder; without one, nothing is left out.

    Raises:
        InvalidInput: it has a pattern that isn't one.
    """
    for name in IGNORE_FILES:
        lines = ignore_lines(top, name, "/code")
        if lines is None:
            continue
        from pathspec import GitIgnoreSpec  # most processes never need it

        try:
            return GitIgnoreSpec.from_lines(lines)
        except ValueError as error:
            raise InvalidInput.at("/code", f"{name}: {error}") from error
    return NothingIgnored()


def _outside(name: str) -> InvalidInput:
    return UnsafePath.at("/code", f"{name} is a link to outside the code folder", LEAVE_OUT_HINT)
