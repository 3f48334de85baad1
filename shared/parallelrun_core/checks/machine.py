"""This machine: Python, CPUs, memory, and the limits of this user."""

from __future__ import annotations

import os
import platform
import resource
import shutil
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Final

from parallelrun_core.wire.finding import Check, Finding, Place, bad, ok, warn

_PYTHON: Final = (3, 11)
_MEMORY_BYTES: Final = 1 << 30
_FILES: Final = 1024
_PROCESSES: Final = 512
_SHM: Final = "/dev/shm"  # noqa: S108 - its size is all that is asked for
_SHM_BYTES: Final = 64 << 20


def python(_: Place) -> Iterator[Finding]:
    """The Python that runs this, and that workers have unless their job asks for another."""
    message = f"ParallelRun {version('parallelrun')}, Python {platform.python_version()} ({sys.executable})"
    if sys.version_info < _PYTHON:
        yield bad(message, "install Python 3.11 or later, and ParallelRun into it")
    elif sys.platform != "linux":
        yield bad(f"{message} on {sys.platform}", "run services on Linux; elsewhere only the client works")
    else:
        yield ok(message)


def cpus(_: Place) -> Iterator[Finding]:
    """Return how many CPUs this process may use."""
    present, usable = os.cpu_count() or 1, len(os.sched_getaffinity(0))
    message = f"{usable} of {present} CPUs may be used"
    if usable < present:
        yield warn(message, "if that is not on purpose: see taskset, or the limits of the container or batch system")
    else:
        yield ok(message)


def memory(_: Place) -> Iterator[Finding]:
    """Return how much memory is free."""
    fields = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
    total, free = (int(fields[name].split()[0]) << 10 for name in ("MemTotal", "MemAvailable"))
    message = f"{free >> 20:,} of {total >> 20:,} MiB of memory are available"
    if free < _MEMORY_BYTES:
        yield warn(message, "run fewer workers (--processes), or close what needs much")
    else:
        yield ok(message)


def open_files(_: Place) -> Iterator[Finding]:
    """Return how many files a process may have open."""
    soft, _hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield _limit("ulimit -n", "open files", soft, _FILES)


def processes(_: Place) -> Iterator[Finding]:
    """Return how many processes this user may have."""
    soft, _hard = resource.getrlimit(resource.RLIMIT_NPROC)
    yield _limit("ulimit -u", "processes", soft, _PROCESSES)


def _limit(name: str, unit: str, soft: int, least: int) -> Finding:
    if soft == resource.RLIM_INFINITY:
        return ok(f"{name}: any number of {unit}")
    message = f"{name}: {soft:,} {unit}"
    return ok(message) if soft >= least else warn(message, f"raise it to {least:,} or more, as in: {name} {least}")


def shared_memory(_: Place) -> Iterator[Finding]:
    """The size of /dev/shm, through which libraries such as torch hand data from process to process."""
    try:
        size = shutil.disk_usage(_SHM).total
    except OSError as error:
        yield warn(f"{_SHM}: {error.strerror}", "mount a tmpfs there, if scripts share memory between processes")
        return
    message = f"{_SHM} has {size >> 20:,} MiB"
    if size < _SHM_BYTES:
        yield warn(message, "give it more if scripts share tensors, as with shm_size of a container")
    else:
        yield ok(message)


CHECKS: Final[tuple[Check, ...]] = (python, cpus, memory, open_files, processes, shared_memory)
