"""Checks of the kernel: the calls that agents need."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from parallelrun_core.wire.finding import Check, Finding, Place, bad, ok, warn

_PR_GET_CHILD_SUBREAPER: Final = 37
_NEWER: Final = "use Linux 5.3 or later, or a sandbox that lets this through"


def pidfd(_: Place) -> Iterator[Finding]:
    """Agents see the end of a worker by a descriptor of its process."""
    try:
        os.close(os.pidfd_open(os.getpid()))
    except OSError as error:
        yield bad(f"pidfd_open: {error.strerror}; agents can't watch their workers", _NEWER)
    else:
        yield ok("pidfd_open works")


def subreaper(_: Place) -> Iterator[Finding]:
    """Agents end what their workers leave behind."""
    is_set = ctypes.c_int()
    if ctypes.CDLL(None).prctl(_PR_GET_CHILD_SUBREAPER, ctypes.byref(is_set), 0, 0, 0) == 0:
        yield ok("orphaned processes of workers can be ended (subreaper)")
    else:
        yield warn("no subreaper: processes that scripts leave behind live on", _NEWER)


def memory_files(_: Place) -> Iterator[Finding]:
    """Workers get their mini-batches through memory that has the form of a file."""
    try:
        os.close(os.memfd_create("parallelrun-doctor", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING))
    except OSError as error:
        yield bad(f"memfd_create: {error.strerror}; no worker can be started", _NEWER)
    else:
        yield ok("memfd_create works")


def pressure(_: Place) -> Iterator[Finding]:
    """Return whether the kernel says how much work waits for memory and disk."""
    if Path("/proc/pressure/memory").exists():
        yield ok("the kernel measures pressure (PSI)")
    else:
        yield ok("the kernel does not measure pressure (PSI); nothing here needs it")


CHECKS: Final[tuple[Check, ...]] = (pidfd, subreaper, memory_files, pressure)
