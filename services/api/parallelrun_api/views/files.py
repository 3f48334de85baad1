"""Lists and opens the logs and outputs of a job, without ever following a link.

Users' code can write where these files are. So nothing here uses a path twice: the file that was opened is the one
that is checked and sent.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from heapq import merge
from itertools import groupby, islice
from pathlib import Path
from typing import Final

import msgspec

from parallelrun_api.http.paging import decode_token, encode_token
from parallelrun_api.views.folder_names import FolderNames
from parallelrun_core.answers.answer import rfc3339
from parallelrun_core.answers.files import FileEntry, FileList, OutputElsewhere
from parallelrun_core.errors import NotFound, UnsafePath
from parallelrun_core.untrusted.paths import open_beneath, relative_parts

MAX_FILES: Final = 10_000
MAX_TAIL_LINES: Final = 100_000
_MAX_TAIL_BYTES: Final = 16 << 20
_MAX_DEPTH: Final = 32
_PLAIN: Final = 250
"""Characters of a name that is not too long, with a `/` at its end."""
_LIST: Final = "files"
_CLOSED: Final = (
    "the script has closed it to all users but its own, as `tempfile` does; before it ends, it can open it: "
    "os.chmod(path, 0o644)"
)
_BLOCK: Final = 1 << 16
_MAX_SEARCHED: Final = 100_000
"""Entries of a folder among which the other names of a file are searched."""


@dataclass(frozen=True, kw_only=True)
class ServedFolder:
    anchor: Path
    """A folder that no job can replace."""
    beneath: str
    """The path from there to the folder; a job may have created any part of it."""
    only: str = ""
    """The one file in it that is served; empty: all."""
    name: str = ""
    """Prefix of the paths of its files."""
    names: FolderNames = field(default_factory=FolderNames)
    """Reads the names in it."""

    def files(self, after: str = "") -> Iterator[FileEntry]:
        """The regular files in it, by path: those whose path comes after `after`. None when it doesn't exist."""
        prefix = f"{self.name}/" if self.name else ""
        if after > prefix and not after.startswith(prefix):
            return
        for entry in _files(self, after.removeprefix(prefix) if after.startswith(prefix) else ""):
            yield msgspec.structs.replace(entry, path=prefix + entry.path) if prefix else entry

    def open(self, path: str) -> int:
        """Open a regular file in it; returns the file descriptor.

        Raises:
            UnsafePath: the path leaves the folder.
            NotFound: there is no such file, or it isn't a regular one.
        """
        parts = relative_parts(path)
        if self.name:
            named = tuple(self.name.split("/"))
            if parts[: len(named)] != named or len(parts) == len(named):
                raise NotFound(f"There is no file {path[:200]!r}.")
            parts = parts[len(named) :]
        if self.only and parts != (self.only,):
            raise NotFound(f"There is no file {path[:200]!r}.")
        try:
            fd = open_beneath(self.anchor, "/".join((self.beneath, *parts)))
        except NotFound as error:
            if isinstance(error.__cause__, PermissionError):
                raise NotFound(f"The file {path[:200]!r} can't be read here: {_CLOSED}") from error
            raise NotFound(f"There is no file {path[:200]!r}.") from error
        except OSError as error:
            raise NotFound(f"There is no file {path[:200]!r}.") from error
        try:
            status = os.fstat(fd)
            if not stat.S_ISREG(status.st_mode):
                raise NotFound(f"{path[:200]!r} is not a file.")
            if _is_shared(status, self):
                raise NotFound(
                    f"{path[:200]!r} also has a name elsewhere (a hard link), so it may be a file of others; "
                    "copy it to give the job's output a file of its own."
                )
        except BaseException:
            os.close(fd)
            raise
        return fd

    def head(self, path: str, most: int) -> bytes:
        """Return the first bytes of a regular file in it; none of a file that can't be read."""
        try:
            fd = self.open(path)
        except (NotFound, UnsafePath):
            return b""
        try:
            return os.pread(fd, most, 0)
        except OSError:
            return b""
        finally:
            os.close(fd)

    def names_of(self, target: os.stat_result) -> int:
        """Return how many names a file has in this folder; 0 if there is too much to search.

        A file system may refuse to make a link to what one can't write to (`fs.protected_hardlinks`), or not; so who
        owns the file doesn't matter here, and a job may give its own outputs more names.
        """
        names, folders, entries = 0, [""], 0
        while folders:
            below = folders.pop()
            try:
                fd = open_beneath(self.anchor, f"{self.beneath}/{below}".rstrip("/"), os.O_RDONLY | os.O_DIRECTORY)
            except (NotFound, UnsafePath):
                continue  # gone since it was listed, or of a name that can't be asked for
            try:
                with os.scandir(fd) as scan:
                    for entry in scan:
                        entries += 1
                        if entries > _MAX_SEARCHED:
                            return 0
                        if entry.is_dir(follow_symlinks=False):
                            folders += [] if self.only else [f"{below}{entry.name}/"]
                        elif entry.inode() == target.st_ino:
                            status = entry.stat(follow_symlinks=False)
                            names += os.path.samestat(status, target)
            finally:
                os.close(fd)
        return names


def _is_shared(status: os.stat_result, served: ServedFolder) -> bool:
    """Return whether a file has names outside of what is served: user code can give one of others a name in its
    outputs."""
    return status.st_nlink > 1 and served.names_of(status) != status.st_nlink


@dataclass(frozen=True)
class ServedFolders:
    """Several folders as one; when several have a file of the same path, that of the first one is served."""

    folders: tuple[ServedFolder, ...]
    elsewhere: tuple[OutputElsewhere, ...] = ()
    """Outputs that are in no folder here."""

    def files(self, after: str = "") -> Iterator[FileEntry]:
        """The regular files in all of them, by path: those whose path comes after `after`."""
        of_each = (folder.files(after) for folder in self.folders)
        for _, same in groupby(merge(*of_each, key=_path), key=_path):
            yield next(same)  # of the first folder: merging keeps the order of those that are equal

    def open(self, path: str) -> int:
        """Open a regular file in one of them; returns the file descriptor.

        Raises:
            UnsafePath: the path leaves the folders.
            NotFound: there is no such file, or it isn't a regular one.
        """
        for folder in self.folders[:-1]:
            with suppress(NotFound):
                return folder.open(path)
        if not self.folders:
            where = ", ".join(each.url for each in self.elsewhere)
            raise NotFound(f"There is no file {path[:200]!r} here: the output is in an object store, at {where}.")
        return self.folders[-1].open(path)


def page(served: ServedFolder | ServedFolders, after: str) -> FileList:
    """Return one page of files: those after the path with which the page before it ended."""
    entries = list(islice(served.files(after), MAX_FILES + 1))
    more = len(entries) > MAX_FILES
    token = encode_token(_LIST, entries[MAX_FILES - 1].path) if more else None
    elsewhere = list(served.elsewhere) if isinstance(served, ServedFolders) else []
    return FileList(items=entries[:MAX_FILES], truncated=more, next_page_token=token, elsewhere=elsewhere)


def page_begin(token: str) -> str:
    """The path after which the page of this token begins.

    Raises:
        InvalidInput: it isn't a token of a list of files.
    """
    return decode_token(token, _LIST, 1)[0] if token else ""


def _path(entry: FileEntry) -> str:
    return entry.path


def _files(served: ServedFolder, after: str) -> Iterator[FileEntry]:
    """Regular files whose path can be asked for, by path; those after `after`."""
    try:
        fd = open_beneath(served.anchor, served.beneath, os.O_RDONLY | os.O_DIRECTORY)
    except (NotFound, OSError):
        return
    try:
        if not served.only:
            yield from _below(fd, served.names, "", after, 0)
        elif served.only > after and _can_be_asked_for(served.only):
            yield from _file(fd, "", served.only)
    finally:
        os.close(fd)


def _below(folder: int, names: FolderNames, prefix: str, after: str, depth: int) -> Iterator[FileEntry]:
    head, slash, rest = after.partition("/")
    for name in names.after(folder, head + slash):
        if not _can_be_asked_for(name):
            continue
        if not name.endswith("/"):
            if name != after:
                yield from _file(folder, prefix, name)
        elif depth < _MAX_DEPTH:
            try:
                fd = os.open(name[:-1], os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder)
            except OSError:
                continue  # gone or replaced since it was listed
            try:
                yield from _below(fd, names, prefix + name, rest if name == head + slash else "", depth + 1)
            finally:
                os.close(fd)


def _file(folder: int, prefix: str, name: str) -> Iterator[FileEntry]:
    try:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except OSError:
        return  # gone since it was listed
    if stat.S_ISREG(status.st_mode):
        yield FileEntry(path=prefix + name, bytes=status.st_size, modified=rfc3339(status.st_mtime))


def _can_be_asked_for(name: str) -> bool:
    if name.isascii() and name.isprintable() and "\\" not in name and len(name) < _PLAIN:
        return True  # nearly all of them, in a tenth of the time
    try:
        relative_parts(name)
        name.encode()
    except (UnsafePath, UnicodeEncodeError):
        return False
    return True


def last_lines(fd: int, size: int, lines: int) -> int:
    """The offset at which the last lines of a file begin, looking back no further than a limit."""
    if lines <= 0:
        return size
    # A line break at the end of the file begins no further line.
    count = lines + 1 if size and os.pread(fd, 1, size - 1) == b"\n" else lines
    at = size
    while at > 0 and size - at < _MAX_TAIL_BYTES:
        begin = max(0, at - _BLOCK)
        block = os.pread(fd, at - begin, begin)
        position = len(block)
        while (position := block.rfind(b"\n", 0, position)) >= 0:
            count -= 1
            if count == 0:
                return begin + position + 1
        at = begin
    return at
