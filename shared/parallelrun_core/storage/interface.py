"""The interface of a storage, for the checkers, planners and readers of users' data. `local/` is the one that is there.

A path is that of a location (`location.py`): a local path, or a URL. In a stream of many it is bytes, as the operating
system has it and as messages and manifest keep it.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Sequence
from io import SEEK_END
from typing import BinaryIO, Final, NamedTuple, Protocol

from parallelrun_core.storage.leftovers import LeftoverNames
from parallelrun_core.storage.path_rule import PathRule
from parallelrun_core.wire.message import FileVersion

Page = tuple[bytes, list[bytes]]
"""A folder, and the names of some files directly in it."""
_HEX: Final = re.compile(r'"[0-9a-f]+"')


class Version(NamedTuple):
    """The version of a file: tells one content of it from another."""

    size_bytes: int
    modified: float
    """Seconds since the epoch, by the storage's own clock."""
    tag: str = ""
    """An ETag or a generation; empty where the storage has none."""

    @property
    def is_known(self) -> bool:
        """Return whether it tells anything: some web servers say neither what content they have nor since when."""
        return bool(self.tag or self.modified)


def packed(version: Version) -> FileVersion:
    """Return a version as messages have it, in few bytes: there may be a billion, and hashes can't be compressed."""
    size_bytes, modified, tag = version
    if not tag:
        return FileVersion(size_bytes, b"", modified)
    if _HEX.fullmatch(tag) and not len(tag) % 2:
        return FileVersion(size_bytes, b"#" + bytes.fromhex(tag[1:-1]))
    return FileVersion(size_bytes, b"=" + tag.encode())


def unpacked(version: FileVersion) -> Version:
    """The inverse of `packed`, but for the time of a version that has a tag."""
    kind, tag = version.tag[:1], version.tag[1:]
    text = f'"{tag.hex()}"' if kind == b"#" else tag.decode()
    return Version(version.size_bytes, version.modified, text)


class Replaced(OSError):
    """A file is not the one that was asked for: there is another version of it now."""


class PathProblem(NamedTuple):
    """Why a job can't use a path, and what to do."""

    message: str
    hint: str = ""


class Listing(Protocol):
    """The files that a path stands for, while they are listed."""

    @property
    def is_sorted(self) -> bool:
        """Return whether all of it came in the order of whole paths; final when the iteration ends."""
        ...

    @property
    def versions(self) -> Sequence[Version] | None:
        """The versions of the page that was yielded last, in the order of its names; None if asking for them would cost
        a call for each file."""
        ...

    @property
    def markers(self) -> LeftoverNames:
        """Objects that were left out as they only mark a folder; final when the iteration ends."""
        ...

    def __iter__(self) -> Iterator[Page]:
        """Yield pages, the first one as soon as it is known.

        Raises:
            OSError: the path, or a folder below it, can't be read; `filename` says which.
            InvalidInput: it is neither a file nor a folder, or the rule refuses what a link in it leads to.
        """
        ...


class NewFile(Protocol):
    """A file on its way, written from its beginning to its end. Nobody sees it until it is published.

    Used in a `with` statement: what was not published by its end is gone.
    """

    def __enter__(self) -> NewFile: ...

    def __exit__(self, *_: object) -> None: ...

    def write(self, data: memoryview) -> None:
        """Add these bytes, which may be changed afterwards. Not called by two threads at the same time.

        Raises:
            OSError: the storage doesn't take them.
        """
        ...

    def sync(self) -> None:
        """Make all of it durable; nothing can be added after that.

        Raises:
            OSError: the storage couldn't keep all that it took.
        """
        ...

    def publish(self, own_hashes: Container[str]) -> None:
        """Give it its name: whole, in one step, durably, and without replacing anything of others.

        Args:
            own_hashes: the sha256 of each content that may be replaced.

        Raises:
            Conflict: something else has that name.
            OSError: the storage refuses.
        """
        ...


class Storage(Protocol):
    """A kind of storage. Without state, so that all threads can share it, and a fork takes nothing along."""

    is_near: bool
    """True if asking it needs no server: the API asks no other."""

    # When a job is submitted. These must be quick, and the API fetches nothing from servers that a user names.

    def place_trouble(
        self, path: str, rule: PathRule, *, pattern: Sequence[str] | None = None, is_written: bool = False
    ) -> PathProblem | None:
        """Why a job may not use such a path at all: not a whole path, or the rule refuses what it leads to.

        Args:
            pattern: the names below this path of the files that will be listed; None if it isn't listed.
        """
        ...

    def input_trouble(
        self, path: str, *, is_one_file: bool = False, rule: PathRule | None = None
    ) -> PathProblem | None:
        """Why there is nothing to read at a folder, file or pattern, as far as that can be known now; or None.

        Args:
            is_one_file: the job wants a single file.
        """
        ...

    def output_trouble(self, path: str, *, is_file: bool = False) -> PathProblem | None:
        """Why a folder, or a file, can't be created or written to, as far as that can be known now; or None."""
        ...

    # Inputs. With a rule, nothing that it refuses is listed or opened, whatever a link led to when it was checked.

    def split(self, path: str) -> tuple[str, list[str]]:
        """The fixed part of a path, and the names of its pattern; these are empty unless it is a pattern."""
        ...

    def below(self, path: str, top: str) -> str | None:
        """Return how a file is called from a folder that it is in, or, if `top` is that file, its name; None if it is
        neither.

        Args:
            top: without a pattern.
        """
        ...

    def unique_relative_path(self, path: str) -> str:
        """A relative path for a file that none of another folder, bucket or server has."""
        ...

    def is_folder(self, path: str) -> bool:
        """Return whether a folder is there. Raises OSError if that can't be found out."""
        ...

    def is_there(self, path: str) -> bool:
        """Return whether anything has exactly this name, be it a link that leads nowhere."""
        ...

    def files(self, path: str, below: Sequence[str] = (), rule: PathRule | None = None) -> Listing:
        """The files of a folder at any depth, one file, or the files that match a pattern; all in one order.

        Args:
            below: names of a pattern below the folder `path`, which is then taken literally.
        """
        ...

    def version(self, path: str | bytes) -> Version:
        """The version of one file that is there now.

        Raises:
            FileNotFoundError: it is gone.
            OSError: it can't be asked for.
        """
        ...

    def open(
        self,
        path: str | bytes,
        rule: PathRule | None = None,
        *,
        version: Version | None = None,
        is_streamed: bool = False,
    ) -> BinaryIO:
        """A file to be read in ranges: `seek`, then `read` of at most so many bytes, which fetches those and no more.

        Args:
            version: read this one or fail, where versions have tags; by default the present one.
            is_streamed: small reads will follow each other, so more than those may be fetched, and ahead of them.

        Raises:
            OSError: it can't be read.
            UnsafePath: the rule refuses what was opened.
            Replaced: there is another version now; raised by reads, too.
        """
        ...

    def whole(self, path: str, version: Version) -> memoryview:
        """All of a small file, in this version, without a copy of what the storage's library has of it.

        Raises:
            OSError: it can't be read.
            Replaced: there is another version now.
        """
        ...

    def copy(
        self, path: str, version: Version, fd: int, part: range | None = None, rule: PathRule | None = None
    ) -> None:
        """Write all of a file, or these bytes of it, in this version, to an empty local file that is open.

        Args:
            rule: what the file is checked by, once it is open.

        Raises:
            UnsafePath: the rule refuses it.
            OSError: it can't be read (`filename` is the path), or not be written.
            Replaced: there is another version now.
        """
        ...

    # Outputs

    def identity(self, path: str) -> str:
        """The one name of a file, of all those by which it can be named. Nothing is asked of a server for it."""
        ...

    def create(self, path: str, job_id: str, rule: PathRule | None = None) -> NewFile:
        """Begin to write a file; missing folders above it are created.

        Args:
            job_id: `unfinished` finds by it what a process that died has left.

        Raises:
            OSError: the storage refuses.
            UnsafePath: the rule refuses the folder that the path leads to.
        """
        ...

    def put(self, path: str, file: BinaryIO, size_bytes: int) -> None:
        """Make a file of what is read of this one, whole or not at all. Whatever has that name is replaced.

        Raises:
            OSError: the storage refuses, or doesn't answer for long.
            ValueError: no file can have that name there.
        """
        ...

    def replace(self, source: str, target: str) -> None:
        """Give a file the name of another one beside it, which it replaces in one step, durably.

        Raises:
            OSError: the storage refuses.
        """
        ...

    def unfinished(self, path: str, job_id: str) -> Sequence[str]:
        """Return what `create` of the same path and job has begun, and neither published nor removed so far."""
        ...

    def discard(self, unfinished: Sequence[str]) -> None:
        """Remove what `unfinished` has returned, and whoever still writes it will fail.

        Raises:
            OSError: the storage refuses.
        """
        ...


def size_of(file: BinaryIO) -> int:
    """Return how many bytes the file has."""
    return file.seek(0, SEEK_END)


def read_at(file: BinaryIO, start: int, size: int) -> bytes:
    """Return at most so many bytes from there on; fewer only at the end of the file."""
    file.seek(start)
    return file.read(size)
