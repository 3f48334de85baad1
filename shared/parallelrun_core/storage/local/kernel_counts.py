"""Reads the kernel's counts of the folders that a job reads: for a disk its reads, for NFS its calls to the server.

The script reads folders itself, so no request of ours could be timed. The kernel counts for all processes of the node:
what it had in memory already is no read, and what others read meanwhile is counted, too.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

_PROC: Final = Path("/proc")
_SECTOR_BYTES: Final = 512
"""Of /proc/diskstats, whatever the disk has."""
_OCTAL: Final = re.compile(r"\\([0-7]{3})")
_OF_NFS: Final = {"READ": "read", "OPEN": "open", "LOOKUP": "lookup", "GETATTR": "stat"}
"""Calls of NFS that reading files takes, each with its name in reports."""


class FileSystem(NamedTuple):
    """A file system, as this process sees it."""

    point: str
    kind: str
    device: str
    """`MAJOR:MINOR`."""
    source: str

    @property
    def label(self) -> str:
        """The name of the file system in reports."""
        return f"{self.point} ({self.kind})"


class KernelCounts(NamedTuple):
    """Counts of one operation on one file system, since some time."""

    requests: int = 0
    bytes: int = 0
    failures: int = 0
    retries: int = 0
    seconds: float = 0.0
    """The sum of how long each request took."""

    def minus(self, before: KernelCounts) -> KernelCounts:
        return KernelCounts(
            self.requests - before.requests, self.bytes - before.bytes, self.failures - before.failures,
            self.retries - before.retries, self.seconds - before.seconds,
        )  # fmt: skip


Counts = dict[tuple[str, str], KernelCounts]
"""By the label of the file system, and the operation."""


def mounts_of(folders: Iterable[str], proc: Path = _PROC) -> list[FileSystem]:
    """The file systems of these folders, each once; none where the system doesn't say."""
    try:
        text = (proc / "self" / "mountinfo").read_text(errors="surrogateescape")
    except OSError:
        return []
    mounts = {mount.point: mount for mount in map(_mount, text.splitlines()) if mount is not None}
    points = {_point_of(os.path.realpath(folder), mounts) for folder in folders}
    return [mounts[point] for point in sorted(points & mounts.keys())]


def counts_of(mounts: Iterable[FileSystem], proc: Path = _PROC) -> Counts:
    """The kernel's counts so far for these file systems; nothing for one that is in memory, or remote in
    another way than NFS."""
    counts: Counts = {}
    with suppress(OSError, ValueError, IndexError):
        of_disks = _disks((proc / "diskstats").read_text())
        of_nfs = dict(_nfs((proc / "self" / "mountstats").read_text(errors="surrogateescape")))
        for mount in mounts:
            for operation, each in of_nfs.get(mount.point, {}).items():
                counts[mount.label, operation] = each
            name = os.path.basename(os.path.realpath(mount.source)) if mount.source.startswith("/dev/") else ""
            read = of_disks.get(mount.device) or of_disks.get(name)
            if read is not None:
                counts[mount.label, "read"] = read
    return counts


def _mount(line: str) -> FileSystem | None:
    mounted, _, about = line.partition(" - ")
    first, last = mounted.split(), about.split()
    if len(first) < 5 or len(last) < 2:
        return None
    return FileSystem(_plain(first[4]), last[0], first[2], _plain(last[1]))


def _plain(text: str) -> str:
    return _OCTAL.sub(lambda octal: chr(int(octal[1], 8)), text)


def _point_of(path: str, mounts: Mapping[str, FileSystem]) -> str:
    while path not in mounts and path != "/":
        path = os.path.dirname(path)
    return path


def _disks(text: str) -> dict[str, KernelCounts]:
    """The reads of each disk and partition, by its number and by its name."""
    counts = {}
    for line in text.splitlines():
        major, minor, name, reads, _, sectors, ms, *_ = line.split()
        read = KernelCounts(int(reads), int(sectors) * _SECTOR_BYTES, seconds=int(ms) / 1000)
        counts[f"{major}:{minor}"] = counts[name] = read
    return counts


def _nfs(text: str) -> Iterator[tuple[str, dict[str, KernelCounts]]]:
    """The calls of each mount of NFS, by its mount point."""
    for block in re.split(r"^device ", text, flags=re.MULTILINE):
        head, _, rest = block.partition("\n")
        mounted = re.match(r"\S+ mounted on (\S+) with fstype nfs", head)
        if mounted is None:
            continue
        calls = {}
        for name, operation in _OF_NFS.items():
            if line := re.search(rf"^\s+{name}: (.+)$", rest, flags=re.MULTILINE):
                count, sent, _, _, received, _, _, ms, *errors = map(int, line[1].split())
                size = received if operation == "read" else 0
                calls[operation] = KernelCounts(count, size, sum(errors[:1]), max(0, sent - count), ms / 1000)
        yield _plain(mounted[1]), calls
