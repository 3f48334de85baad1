"""The folder for a cluster's data: room, and the semantics on which nothing-lost-nothing-twice rests."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from parallelrun_core.wire.finding import Check, Finding, Place, bad, ok, warn

_LEAST_BYTES: Final = 100 << 20
_SMALL_BYTES: Final = 2 << 30
_SLOW_SYNC_S: Final = 0.1
_MOUNTS: Final = Path("/proc/self/mountinfo")
_NETWORK: Final = frozenset(
    {"9p", "afs", "beegfs", "ceph", "cifs", "glusterfs", "gpfs", "lustre", "nfs", "nfs4", "smb3", "virtiofs"}
)
_LOCAL: Final = "name a folder on another file system (--root here, --root of `parallelrun up`, PARALLELRUN_ROOT)"


def folder(place: Place) -> Iterator[Finding]:
    """Return whether it can be written to, and what file system it is on."""
    existing = _existing(place)
    kind = _kind_of(existing)
    try:
        with tempfile.TemporaryFile(dir=existing):
            pass
    except OSError as error:
        yield bad(f"{existing} can't be written to: {error.strerror}", "change its owner or mode, or name another root")
        return
    if kind in _NETWORK or kind.startswith("fuse"):
        yield warn(
            f"{existing} is on a network file system ({kind})",
            "fine if all nodes mount it with the same options and close-to-open consistency; Redis' data belong on "
            "a local disk",
        )
    elif kind in ("tmpfs", "ramfs"):
        yield warn(f"{existing} is in memory ({kind}): a restart of this machine loses all jobs", _LOCAL)
    else:
        yield ok(f"{existing} can be written to ({kind or 'unknown file system'})")


def room(place: Place) -> Iterator[Finding]:
    """Return how much is free there."""
    usage = shutil.disk_usage(_existing(place))
    message = f"{usage.free >> 20:,} MiB are free of {usage.total >> 20:,}"
    if usage.free < _LEAST_BYTES:
        yield bad(message, f"make room: nodes wait while the disk is full; or {_LOCAL}")
    elif usage.free < _SMALL_BYTES:
        yield warn(message, "make room for outputs and logs")
    else:
        yield ok(message)


def semantics(place: Place) -> Iterator[Finding]:
    """Return whether files behave as the protocol of the job folder takes for granted."""
    existing = _existing(place)
    if not os.access(existing, os.W_OK | os.X_OK):
        return
    fine = []
    with tempfile.TemporaryDirectory(prefix=".parallelrun-doctor-", dir=existing) as scratch:
        for name, (probe, why) in PROBES.items():
            try:
                trouble = probe(Path(tempfile.mkdtemp(dir=scratch)))
            except OSError as error:
                trouble = error.strerror or str(error)
            if trouble:
                yield bad(f"{name}: {trouble}; {why}", _LOCAL)
            else:
                fine.append(name)
    if fine:
        yield ok(f"as it must be: {', '.join(fine)}")


def speed(place: Place) -> Iterator[Finding]:
    """Return how long it takes to make a small file durable: each commit of a node waits for that."""
    existing = _existing(place)
    if not os.access(existing, os.W_OK | os.X_OK):
        return
    with tempfile.TemporaryFile(dir=existing) as file:
        file.write(b"x" * 4096)
        began = time.monotonic()
        os.fsync(file.fileno())
        took_s = time.monotonic() - began
    message = f"a sync takes {took_s * 1000:.1f} ms"
    if took_s > _SLOW_SYNC_S:
        yield warn(message, "expect slow commits of short mini-batches; a faster disk helps")
    else:
        yield ok(message)


def past_the_cache(place: Place) -> Iterator[Finding]:
    """Return whether large outputs can be written past the page cache. It only makes them faster."""
    existing = _existing(place)
    if not os.access(existing, os.W_OK | os.X_OK):
        return
    with tempfile.NamedTemporaryFile(dir=existing, prefix=".parallelrun-doctor-") as file:
        try:
            os.close(os.open(file.name, os.O_WRONLY | os.O_DIRECT))
        except OSError:
            yield ok("outputs are written through the page cache (no O_DIRECT)")
        else:
            yield ok("outputs are written past the page cache (O_DIRECT)")


def _hard_links(scratch: Path) -> str:
    file, link = scratch / "file", scratch / "link"
    file.touch()
    os.link(file, link)
    try:
        os.link(file, link)
    except FileExistsError:
        return "" if file.stat().st_nlink == 2 else "a link is no second name of its file"
    return "a link replaces an existing file"


def _rename(scratch: Path) -> str:
    old, new = scratch / "old", scratch / "new"
    old.write_text("old")
    new.write_text("new")
    new.replace(old)
    return "" if old.read_text() == "new" and not new.exists() else "the old content is still there"


def _exclusive(scratch: Path) -> str:
    (scratch / "file").touch()
    try:
        os.close(os.open(scratch / "file", os.O_CREAT | os.O_EXCL | os.O_WRONLY))
    except FileExistsError:
        return ""
    return "O_EXCL opens a file that is there already"


def _syncs(scratch: Path) -> str:
    for path, flags in ((scratch / "file", os.O_CREAT | os.O_WRONLY), (scratch, os.O_RDONLY | os.O_DIRECTORY)):
        descriptor = os.open(path, flags)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    return ""


def _locks(scratch: Path) -> str:
    with open(scratch / "lock", "wb") as one, open(scratch / "lock", "wb") as other:
        fcntl.flock(one, fcntl.LOCK_EX | fcntl.LOCK_NB)
        try:
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return ""
    return "two hold the same lock"


def _letter_case(scratch: Path) -> str:
    (scratch / "a").touch()
    return "A and a are the same file" if (scratch / "A").exists() else ""


PROBES: Final[dict[str, tuple[Callable[[Path], str], str]]] = {
    "hard links": (_hard_links, "two could then publish one output"),
    "renames over a file": (_rename, "results could then be half written"),
    "exclusive creation": (_exclusive, "two leaders could then have the same term"),
    "syncs of files and folders": (_syncs, "what was confirmed could then be lost"),
    "locks": (_locks, "two clusters could then use one folder"),
    "letter case": (_letter_case, "files of inputs and code could then take each other's place"),
}
"""What is tried, and what its failure would lead to."""


def _existing(place: Place) -> Path:
    """The root, or the nearest folder above it that is there."""
    return next(each for each in (place.root, *place.root.parents) if each.exists())


def _kind_of(path: Path) -> str:
    """The type of the file system that a path is on; empty if the kernel doesn't say."""
    real, best, kind = path.resolve(), Path(), ""
    try:
        lines = _MOUNTS.read_text(errors="surrogateescape").splitlines()
    except OSError:
        return ""
    for line in lines:
        mount, _, source = line.partition(" - ")
        point = Path(mount.split()[4].encode().decode("unicode_escape"))
        if real.is_relative_to(point) and len(point.parts) >= len(best.parts):
            best, kind = point, source.split()[0]
    return kind


CHECKS: Final[tuple[Check, ...]] = (folder, room, semantics, speed, past_the_cache)
