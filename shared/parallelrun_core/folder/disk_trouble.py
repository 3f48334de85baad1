"""Transient errors of a file system: those that may pass by themselves, so that waiting is better than failing."""

from __future__ import annotations

import errno
from typing import Final

_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
_MAY_PASS: Final = _FULL | {
    errno.EIO, errno.EROFS, errno.ESTALE, errno.ETIMEDOUT, errno.ENOTCONN, errno.EHOSTDOWN, errno.EHOSTUNREACH,
    errno.ENOMEM, errno.EMFILE, errno.ENFILE,
}  # fmt: skip


def is_full(error: OSError) -> bool:
    """Return whether there is no room, or a quota is used up: waiting until somebody makes room is
    better than failing.
    """
    return error.errno in _FULL


def is_disk_trouble(error: OSError) -> bool:
    """Return whether the disk is full or the device fails: the process that writes there is not at fault."""
    return is_full(error) or error.errno == errno.EIO


def may_pass(error: OSError) -> bool:
    """Return whether this may be over soon: no room, a volume that is away for a moment, a shortage on this machine."""
    return error.errno in _MAY_PASS


def is_shortage_here(error: OSError) -> bool:
    """Return whether this process, or this machine, has run out of memory or file descriptors: no file is at fault."""
    return error.errno in (errno.ENOMEM, errno.EMFILE, errno.ENFILE)
