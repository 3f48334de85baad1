"""Processes by /proc."""

from __future__ import annotations

import os
from typing import NamedTuple

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_LONGEST_STAT = 4096


class Stat(NamedTuple):
    """A process, by its /proc/<pid>/stat."""

    name: str
    parent: int
    started: int
    """Ticks from the machine's start to the process's: together with the id, it identifies a process until the machine
    stops."""
    cpu_s: float
    """CPU time that it has used so far."""
    resident_bytes: int
    is_runnable: bool
    """Its main thread computes, or would if a CPU were free."""
    has_ended: bool
    """True if it is a zombie: it has not been waited for."""


def process_ids() -> list[int]:
    """Every process of this pid namespace."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208 - no path is needed


def stat_of(pid: int) -> Stat | None:
    """Return what is known about a process; None when there is none (any more)."""
    try:
        fd = os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)  # a file object would cost half as much again
        try:
            line = os.read(fd, _LONGEST_STAT)
        finally:
            os.close(fd)
    except OSError:
        return None
    before, _, after = line.rpartition(b")")  # the name, in brackets, may itself hold spaces and brackets
    name, fields = before.partition(b"(")[2], after.split()
    if len(fields) < 22:
        return None  # it ended while it was read
    return Stat(
        name=name.decode(errors="replace"),
        parent=int(fields[1]),
        started=int(fields[19]),
        cpu_s=(int(fields[11]) + int(fields[12])) / _TICKS,
        resident_bytes=int(fields[21]) * _PAGE,
        is_runnable=fields[0] == b"R",
        has_ended=fields[0] == b"Z",
    )
