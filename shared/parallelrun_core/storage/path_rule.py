"""The one rule that says which files and folders a job may read or write, wherever links lead.

What a path leads to must be below an allowed folder, and must not be among the cluster's own files: those of its root
folder, and other folders that the operator has closed. Four things there are open, all the same, and need not be below
an allowed folder: a job writes to its own `outputs`, reads those of other jobs, to continue their work, reads the files
of assets and what clients have uploaded, and reads and writes the default datastore. Where the workers of each job are
a user of their own, the other jobs are only those of its pipeline. Where people see only what is their own, they are
only those of the same person; and never those that were deleted before.

What the kernel says of processes and devices, in `/proc` and `/sys`, is closed wherever a cluster allows: whoever opens
a file there reads of itself, so a service that copies code would copy its own secrets.

A path is checked as the system would open it: after the expansion of patterns, and with every link followed. What a
service opens itself is checked once more when it is open (`check_opened`): a link that was put there in between changes
nothing then. Workers open their inputs by themselves and with their own rights, which is all the protection that files
have from them.

Allowed places may also be URLs of object stores, and stand for all that begins with them. What a URL leads to is
not the rule's to say: `storage/objects/allowed.py` compares them.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterable, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from parallelrun_core.errors import UnsafePath
from parallelrun_core.ids import JOB_ID
from parallelrun_core.layout import OUTPUTS, asset_files, blobstore_of, jobs_of, uploads_of
from parallelrun_core.storage.globs import Pattern
from parallelrun_core.storage.location import is_url
from parallelrun_core.storage.readable_jobs import Readability, ReadableJobs
from parallelrun_core.storage.schemes import STORED

EVERYWHERE: Final = ("/", *STORED)
"""What the owner of a machine may use there: every folder, and every store."""
_MOST_LINKS: Final = 40
"""As many as the system itself follows."""
_NO_LINK: Final = frozenset({errno.EINVAL, errno.ENOENT, errno.ENOTDIR, errno.EACCES})
_NOTHING: Final = b"(?!)"
_OF_THE_KERNEL: Final = (b"/proc/", b"/sys/")
"""There whoever opens a file reads of itself: a service its own variables, with their secrets. And links there lead
each process elsewhere, some into what others have mounted."""
_IN_THE_FOLDER: Final = "leave this field out to have the output in the job's folder"
_OF_OTHERS: Final = "of ParallelRun's own files, a job can read the outputs of other jobs: the folder jobs/ID/outputs"

_NO_JOB: Final = "name an output of a job that you see"
_APART: Final = (
    "jobs are users of their own here, which can't read the outputs in another job's folder: give that job an output "
    "with a path below an allowed folder"
)


class Places(msgspec.Struct, kw_only=True, frozen=True):
    """The rule of the time when a job was accepted. It holds as long as the job runs."""

    roots: list[str]
    """The allowed folders, and URLs of stores."""
    closed: list[str] = []
    """Folders of the cluster beside its root."""
    are_jobs_apart: bool = False
    """Workers can't read what is in the folders of other jobs, so naming it would only fail later."""
    jobs: list[str] = []
    """Jobs whose outputs they can read nevertheless: steps of the same pipeline, whose workers are the same user."""
    package_hosts: list[str] = []
    """Hosts from which nodes take packages that jobs name by a URL, or by an index of their own; `*`: any."""
    only_owner: str | None = None
    """The person whose jobs alone have outputs that can be read; None: anybody's."""


class Refusal(NamedTuple):
    """Why a path may not be used, and what to do."""

    message: str
    hint: str


class PathRule:
    """Decides about paths. Links in the names of the folders are followed once, when it is created.

    Args:
        root: the cluster's root folder.
        job: the id of the job whose `outputs` may be written to; empty: of none.
        submitted: seconds since the epoch; outputs of jobs that were deleted later may still be read. None: of no
            deleted job.
    """

    def __init__(self, root: Path, places: Places, job: str = "", *, submitted: float | None = None) -> None:
        links = dict[bytes, bytes | None]()  # most of these folders share their parents
        self.package_hosts: Final = places.package_hosts
        self._named = places.roots
        self._are_jobs_apart = places.are_jobs_apart
        jobs, assets, uploads, blobstore = _prefixes(_in_root(root), links)
        folders, urls = _split(tuple(places.roots))
        self.urls: Final = [*urls]
        """Those of stores which may be used, with all that begins with them."""
        self._closed = _prefixes([str(root), *places.closed], links)
        self._allowed = _prefixes(folders, links)
        outside = _outside(self._closed, self._allowed, blobstore)
        self._always_open: Final = b"%b|(?:%b)[^./][^/]*/" % (outside, _any_of((assets, uploads)))
        jobs = _any_of((jobs,))
        self._of_jobs: Final = jobs
        self._own_jobs: Final = [*filter(None, [job, *places.jobs])]
        self._only_owner: Final = places.only_owner
        self._jobs: Final = ReadableJobs(root, only_owner=places.only_owner, deleted_before=submitted)
        written = b"%b|%b%b/%b/" % (outside, jobs, job.encode(), OUTPUTS.encode()) if job else outside
        self._written = written

    @property
    def readable(self) -> str:
        """Return what the paths of the files match that may be read, without links and with a slash at their end. Where
        only one person's jobs count, these are those that this rule was asked about."""
        is_any = self._are_jobs_apart or self._only_owner is None
        return os.fsdecode(self._readable([] if is_any else self._jobs.admitted, is_any=is_any))

    def _readable(self, admitted: Sequence[str], *, is_any: bool) -> bytes:
        job_pattern = "|".join(map(re.escape, [*self._own_jobs, *admitted]))
        others = job_pattern if self._are_jobs_apart or not is_any else JOB_ID
        if not others:
            return self._always_open
        return b"%b|%b(?:%b)/%b/" % (self._always_open, self._of_jobs, others.encode(), OUTPUTS.encode())

    # Each job has a rule, and many ask it for one of the two, or for none.

    @cached_property
    def _may_read(self) -> re.Pattern[bytes]:
        return re.compile(self._readable([], is_any=True))

    @cached_property
    def _job_outputs(self) -> re.Pattern[bytes]:
        return re.compile(b"%b(%b)/%b/" % (self._of_jobs, JOB_ID.encode(), OUTPUTS.encode()))

    @cached_property
    def _may_write(self) -> re.Pattern[bytes]:
        return re.compile(self._written)

    def is_open(self, real: bytes, *, is_written: bool = False) -> bool:
        """Return whether a path that has no links may be used."""
        if is_written:
            return self._may_write.match(real + b"/") is not None
        return self._may_read.match(real + b"/") is not None and self._maker(real)[1] is Readability.READABLE

    def _maker(self, real: bytes) -> tuple[str, Readability]:
        """Return the job in whose outputs a path is, and whether they can be read; a path elsewhere has none."""
        outputs = self._job_outputs.match(real + b"/")
        job_id = outputs[1].decode() if outputs is not None else ""
        is_open = not job_id or job_id in self._own_jobs
        return job_id, Readability.READABLE if is_open else self._jobs.standing(job_id)

    def holds_closed(self, real: bytes, pattern: Sequence[str] = ()) -> bool:
        """Return whether files of the cluster are below this folder, where they would be listed.

        Args:
            pattern: only what matches these names, with their wildcards, is listed.
        """
        path = b"/" if real == b"/" else real + b"/"
        below = [closed[len(path) : -1] for closed in self._closed if closed.startswith(path) and closed != path]
        matcher = Pattern(pattern) if pattern else None
        return any(matcher is None or matcher.is_possible_below(os.fsdecode(each).split("/")) for each in below)

    def refusal(self, path: str, *, pattern: Sequence[str] | None = None, is_written: bool = False) -> Refusal | None:
        """Why a path may not be used; None if it may.

        Args:
            pattern: the names below this path, with their wildcards, of the files that will be listed: none for all of
                them; None if it isn't listed.

        Raises:
            OSError, ValueError: it is no path that could be opened.
        """
        real = resolve(os.fsencode(path))
        if not self.is_open(real, is_written=is_written):
            return self._refusal(os.fsencode(path), real, is_written=is_written)
        if pattern is not None and self.holds_closed(real, pattern):
            message = f"{path!r} also holds ParallelRun's own files"
            return Refusal(message, "name the folders beside them, or keep the data apart")
        return None

    def _refusal(self, path: bytes, real: bytes, *, is_written: bool) -> Refusal:
        path_text, target = os.fsdecode(path), os.fsdecode(real)
        leads = "" if os.path.normpath(path_text) == target else f": it leads to {target!r}"
        if not is_written and self._may_read.match(real + b"/"):
            job_id, standing = self._maker(real)
            if standing is Readability.DELETED:
                hint = f"`parallelrun job restore {job_id}` brings it back"
                return Refusal(f"job {job_id}, whose output {path_text!r} is, was deleted", hint)
            return Refusal(f"there is no job {job_id}, whose output {path_text!r} is", _NO_JOB)
        if (real + b"/").startswith(self._closed):
            hint = _IN_THE_FOLDER if is_written else _APART if self._are_jobs_apart else _OF_OTHERS
            return Refusal(f"{path_text!r} is among ParallelRun's own files{leads}", hint)
        if (real + b"/").startswith(_OF_THE_KERNEL):
            message = f"{path_text!r} is no file on a disk, but what the kernel says of a process or a device{leads}"
            return Refusal(message, _IN_THE_FOLDER if is_written else "copy what the job needs of it to a folder")
        message = f"{path_text!r} is outside of the folders that jobs may use{leads}"
        return Refusal(message, f"allowed_roots: {':'.join(self._named)}")

    def check(self, path: bytes, *, is_written: bool = False) -> None:
        """Make sure that a path may be used.

        Raises:
            UnsafePath: it may not.
            OSError: it is no path that could be opened.
        """
        self._check(path, resolve(path), is_written=is_written)

    def check_opened(self, fd: int, path: bytes, *, is_written: bool = False) -> None:
        """Make sure that what was opened by a path may be used, whatever that path leads to by now.

        Raises:
            UnsafePath: it may not.
        """
        self._check(path, os.readlink(b"/proc/self/fd/%d" % fd), is_written=is_written)

    def check_new_folder(self, above: int, name: str, path: bytes) -> None:
        """Make sure that a folder may be created in one that is open: it may be written to, or an allowed one may be
        below it.

        Raises:
            UnsafePath: it may not.
        """
        real = os.path.join(os.readlink(b"/proc/self/fd/%d" % above), os.fsencode(name))
        if not any(allowed.startswith(real + b"/") for allowed in self._allowed):
            self._check(path, real, is_written=True)

    def _check(self, path: bytes, real: bytes, *, is_written: bool) -> None:
        if not self.is_open(real, is_written=is_written):
            raise UnsafePath.at("", *self._refusal(path, real, is_written=is_written))


def resolve(path: bytes, links: dict[bytes, bytes | None] | None = None) -> bytes:
    """An absolute path with every link followed, also one that leads to what is not there (yet). It ends where it comes
    to what the kernel says of processes.

    `os.path.realpath` takes what it can't ask about, because its name has become too long, for a name without links.

    Args:
        links: remembers where each path on the way leads, None if it is no link; for several calls at the same time.

    Raises:
        OSError: there are too many links, or what they lead to has too long a name.
        ValueError: the path has a NUL.
    """
    here, followed = b"", 0
    links = {} if links is None else links
    rest = path.split(b"/")[::-1]
    while rest:
        name = rest.pop()
        if name in (b"", b"."):
            continue
        if name == b"..":
            here = here.rpartition(b"/")[0]
            continue
        here += b"/" + name
        if here.startswith(_OF_THE_KERNEL):
            return here
        if here not in links:
            links[here] = _link_target(here)
        if (target := links[here]) is None:
            continue
        followed += 1
        if followed > _MOST_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), os.fsdecode(path))
        here = b"" if target.startswith(b"/") else here.rpartition(b"/")[0]
        rest += target.split(b"/")[::-1]
    return here or b"/"


def _link_target(path: bytes) -> bytes | None:
    """Return where a link leads; None: it is none, or not there. Raises OSError."""
    try:
        return os.readlink(path)
    except OSError as error:
        if error.errno not in _NO_LINK:
            raise
        return None


# Each submission makes a rule: what is the same each time is kept.


@lru_cache(maxsize=8)
def _in_root(root: Path) -> tuple[str, ...]:
    """The folders below the root folder in which something is open."""
    return tuple(map(str, (jobs_of(root), asset_files(root), uploads_of(root), blobstore_of(root))))


@lru_cache(maxsize=8)
def _split(places: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the folders among these places, and the URLs."""
    return tuple(each for each in places if not is_url(each)), tuple(filter(is_url, places))


@lru_cache(maxsize=8)
def _outside(closed: tuple[bytes, ...], allowed: tuple[bytes, ...], blobstore: bytes) -> bytes:
    """The pattern of what is open to all: below an allowed folder and not closed, or in the default datastore."""
    refused = _any_of((*closed, *_OF_THE_KERNEL))
    return b"(?!%b)(?:%b)|%b" % (refused, _any_of(allowed) or _NOTHING, _any_of((blobstore,)))


@lru_cache(maxsize=32)
def _any_of(prefixes: tuple[bytes, ...]) -> bytes:
    return b"|".join(map(re.escape, prefixes))


def _prefixes(folders: Iterable[str], links: dict[bytes, bytes | None]) -> tuple[bytes, ...]:
    """Return what the paths of these folders, and of all below them, begin with, once a slash is put at their end."""
    real = [resolve(os.fsencode(folder), links) for folder in folders]
    return tuple(each if each == b"/" else each + b"/" for each in real)
