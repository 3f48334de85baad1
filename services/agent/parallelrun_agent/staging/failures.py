"""Why a mini-batch can't have its files, in words for who submitted the job."""

from __future__ import annotations

import errno
from collections.abc import Iterable
from typing import Final

from parallelrun_core.folder.disk_trouble import is_disk_trouble
from parallelrun_core.storage.interface import Replaced
from parallelrun_core.wire.outcome import Failure

_IN_THE_WAY: Final = frozenset({errno.EEXIST, errno.ENOTDIR, errno.ENOTEMPTY})
_NEEDS_ITS_NAME: Final = (
    "can't be a file here: another object's name is this one and more behind a '/', or the beginning of this one up to "
    "a '/'. Rename one of them."
)

_LONG_NAME: Final = (
    "can't be a file here: between two '/' its key has more bytes than the name of a file may have, which are mostly "
    "255. Rename that object, or leave it out with a pattern."
)

_LONGEST_URL: Final = 160
"""In messages: lists of failed items have the whole name beside the first part of the message, which says why."""


def disk_error_of(error: Exception, url: str) -> str:
    """Return what this node's disk says, which is nobody's fault; empty if it is about the object."""
    is_ours = isinstance(error, OSError) and error.filename != url and is_disk_trouble(error)
    return str(error) if is_ours else ""


def failure_of(error: Exception, url: str) -> Failure:
    """Why this object isn't here."""
    name = url if len(url) <= _LONGEST_URL else f"{url[: _LONGEST_URL - 40]}…{url[-39:]}"
    if isinstance(error, Replaced):
        return Failure("INPUT_CHANGED", f"{name} has been replaced since it was listed.")
    if isinstance(error, OSError):
        if error.errno in _IN_THE_WAY and error.filename != url:
            return Failure("INPUT_UNREADABLE", f"{name} {_NEEDS_ITS_NAME}")
        if error.errno == errno.ENAMETOOLONG:
            return Failure("INPUT_UNREADABLE", f"{name} {_LONG_NAME}")
        return Failure("INPUT_UNREADABLE", f"{name} can't be read: {error.strerror or error}")
    return Failure("INPUT_UNREADABLE", f"{name} can't be read: {error}")


def too_large(size: int, max_bytes: int, beside: int) -> Failure:
    """Return the failure of a mini-batch that would never fit."""
    limit = f"more than the {max_bytes >> 20:,} MiB that --stage-bytes allows on this node"
    if beside:
        limit += f", of which the inputs that each worker needs whole take {beside >> 20:,} MiB"
    return Failure("INPUT_UNREADABLE", f"Its files have {size >> 20:,} MiB, {limit}.")


def starved(size: int, max_bytes: int, timeout_s: float) -> Failure:
    """Others need all there is."""
    limit = f"the {max_bytes >> 20:,} MiB that --stage-bytes allows on this node"
    waited = f"for longer than task_overhead_timeout ({timeout_s:g} s)"
    words = f"There was no room {waited} for its {size >> 20:,} MiB: other jobs use {limit}."
    return Failure("INPUT_UNREADABLE", words)


def overdue(pending: Iterable[tuple[str, str]], missing: int, files: int, timeout_s: float) -> Failure:
    """Return the failure of staging that took too long.

    Args:
        pending: the URLs that aren't here, each with the trouble with it so far, if there is any.
        missing: how many of its files these are.
    """
    limit = f"task_overhead_timeout ({timeout_s:g} s)"
    first = ""
    for url, trouble in pending:
        first = first or url
        if trouble:
            return Failure("INPUT_UNREADABLE", f"{url} can't be read: {trouble} For longer than {limit}.")
    words = f"After {limit}, {missing} of {files} files, such as {first}, were not on this node yet."
    return Failure("LOAD_TIMEOUT", words)
