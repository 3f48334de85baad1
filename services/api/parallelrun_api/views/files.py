"""Files below a job's folder, for those who ask: listed and opened without ever following a link.

Users' code can write where these files are. So nothing here goes by a path twice: what was opened is what is looked
at and what is sent.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from parallelrun_api.models import FileEntry, FileList
from parallelrun_api.views.jobs import rfc3339
from parallelrun_core.errors import NotFound, UnsafePath
from parallelrun_core.paths import open_beneath, relative_parts

MAX_FILES: Final = 10_000
MAX_TAIL_LINES: Final = 100_000
_MAX_TAIL_BYTES: Final = 16 << 20
_MAX_DEPTH: Final = 32
_MAX_ENTRIES: Final = 200_000
_BLOCK: Final = 1 << 16


@dataclass(frozen=True, kw_only=True)
class Place:
    """A folder that files are served from."""

    anchor: Path
    """A folder that no job can replace."""
    beneath: str
    """From there to the folder; any part of it may be a job's work."""
    only: str = ""
    """The one file in it that is served; empty: all."""
    name: str = ""
    """Its paths are below this one."""

    def list(self) -> FileList:
        """The regular files in it, by path; none when it isn't there."""
        found: list[FileEntry] = []
        truncated = False
        for entry in self.files():
            if len(found) == MAX_FILES:
                truncated = True
                break
            found.append(entry)
        return FileList(items=sorted(found, key=lambda entry: entry.path), truncated=truncated)

    def files(self) -> Iterator[FileEntry]:
        """The regular files in it."""
        for entry in _Walk(self).files():
            yield entry.model_copy(update={"path": f"{self.name}/{entry.path}"}) if self.name else entry

    def open(self, path: str) -> int:
        """Open a regular file in it; returns the file descriptor.

        Raises:
            UnsafePath: the path leaves the folder.
            NotFound: there is no such file, or it isn't a regular one.
        """
        parts = relative_parts(path)
        if self.name:
            if parts[0] != self.name or len(parts) == 1:
                raise NotFound(f"There is no file {path[:200]!r}.")
            parts = parts[1:]
        if self.only and parts != (self.only,):
            raise NotFound(f"There is no file {path[:200]!r}.")
        try:
            fd = open_beneath(self.anchor, "/".join((self.beneath, *parts)))
        except OSError as error:
            raise NotFound(f"There is no file {path[:200]!r}.") from error
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            os.close(fd)
            raise NotFound(f"{path[:200]!r} is not a file.")
        return fd


@dataclass(frozen=True)
class Places:
    """Several places as one; of those that have a file of the same path, the first one's is served."""

    places: tuple[Place, ...]

    def list(self) -> FileList:
        """The regular files in all of them, by path."""
        found: dict[str, FileEntry] = {}
        for place in self.places:
            for entry in place.files():
                if len(found) == MAX_FILES and entry.path not in found:
                    return FileList(items=[found[path] for path in sorted(found)], truncated=True)
                found.setdefault(entry.path, entry)
        return FileList(items=[found[path] for path in sorted(found)], truncated=False)

    def open(self, path: str) -> int:
        """Open a regular file in one of them; returns the file descriptor.

        Raises:
            UnsafePath: the path leaves the folders.
            NotFound: there is no such file, or it isn't a regular one.
        """
        for place in self.places[:-1]:
            with suppress(NotFound):
                return place.open(path)
        return self.places[-1].open(path)


class _Walk:
    """One walk through a place."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._left = _MAX_ENTRIES

    def files(self) -> Iterator[FileEntry]:
        """Regular files whose path can be asked for."""
        place = self._place
        try:
            fd = open_beneath(place.anchor, place.beneath, os.O_RDONLY | os.O_DIRECTORY)
        except (NotFound, OSError):
            return
        try:
            yield from self._below(fd, "", 0)
        finally:
            os.close(fd)

    def _below(self, folder: int, prefix: str, depth: int) -> Iterator[FileEntry]:
        with os.scandir(folder) as entries:
            for entry in entries:
                self._left -= 1
                if self._left < 0:
                    return
                yield from self._of(folder, entry, prefix + entry.name, depth)

    def _of(self, folder: int, entry: os.DirEntry[str], path: str, depth: int) -> Iterator[FileEntry]:
        try:
            found = entry.stat(follow_symlinks=False)
            if stat.S_ISREG(found.st_mode) and self._place.only in ("", path) and _can_be_asked_for(path):
                yield FileEntry(path=path, bytes=found.st_size, modified=rfc3339(found.st_mtime))
            elif stat.S_ISDIR(found.st_mode) and not self._place.only and depth < _MAX_DEPTH:
                fd = os.open(entry.name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder)
                try:
                    yield from self._below(fd, f"{path}/", depth + 1)
                finally:
                    os.close(fd)
        except OSError:
            return  # gone or replaced since it was listed


def _can_be_asked_for(path: str) -> bool:
    try:
        relative_parts(path)
        path.encode()
    except (UnsafePath, UnicodeEncodeError):
        return False
    return True


def last_lines(fd: int, size: int, lines: int) -> int:
    """Where in a file its last lines begin, looking back no further than a bound."""
    if lines <= 0:
        return size
    # The line break that ends the last line begins no further one.
    wanted = lines + 1 if size and os.pread(fd, 1, size - 1) == b"\n" else lines
    at = size
    while at > 0 and size - at < _MAX_TAIL_BYTES:
        begin = max(0, at - _BLOCK)
        block = os.pread(fd, at - begin, begin)
        position = len(block)
        while (position := block.rfind(b"\n", 0, position)) >= 0:
            wanted -= 1
            if wanted == 0:
                return begin + position + 1
        at = begin
    return at
