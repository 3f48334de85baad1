"""Which errors of a file system may pass by themselves, so that waiting is better than failing."""

from __future__ import annotations

import errno

_MAY_PASS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EIO})


def is_disk_trouble(error: OSError) -> bool:
    """Whether the disk is full, a quota is used up, or the device doesn't answer: nobody's fault who writes there."""
    return error.errno in _MAY_PASS
