"""The home of an agent whose workers are other users: one into which none of them can put anything.

Installers, git, Python and the clients of stores read configuration from their user's home, and some of it names
programs to run, servers to ask or passwords to send: `.config/pip/pip.conf`, `.aws/config`, `.netrc`. With a home such
as /tmp, a job could write it for them.
"""

from __future__ import annotations

import os
import pwd
import stat
from pathlib import Path
from typing import Final

from parallelrun_core.service.telemetry import logger

log = logger()

_ROOTS: Final = "/"
"""The home of whoever has none: only root puts anything there."""
_WITH_CONFIGURATION: Final = ("XDG_CONFIG_HOME", "XDG_DATA_HOME")


def home_of(uid: int) -> str:
    """Return the home folder of a user; that of all folders if it has none."""
    try:
        home = pwd.getpwuid(uid).pw_dir
    except KeyError:
        home = ""
    return home if os.path.isdir(home) else _ROOTS


def keep_to_closed_home() -> None:
    """Leave a home, and folders of configuration in its stead, that others can write to, or that are not there: who may
    make such a folder, may fill it. For this process and those that it starts."""
    os.environ["HOME"] = _closed(os.path.expanduser("~")) or _ROOTS
    for name in _WITH_CONFIGURATION:
        folder = os.environ.pop(name, "")
        if folder.startswith("/") and (closed := _closed(folder)):
            os.environ[name] = closed


def _closed(folder: str) -> str:
    """Return the real path of a folder into which nobody else can put anything; empty: it is none."""
    real = os.path.realpath(folder)  # or a link on the way might lead elsewhere later
    if not os.path.isdir(real):
        return ""
    reason = who_else_writes(Path(real))
    if reason:
        log.warning("home_not_used", folder=folder, reason=reason)
    return "" if reason else real


def who_else_writes(folder: Path) -> str:
    """Return why somebody but this user and root could put something into a folder, or in its place; empty: nobody."""
    existing = [each for each in [folder, *folder.absolute().parents] if each.exists()]
    for each in existing:
        status = each.stat()
        if status.st_uid not in (0, os.geteuid()):
            return f"{each} belongs to user {status.st_uid}"
        is_open = status.st_mode & stat.S_IWOTH or (status.st_mode & stat.S_IWGRP and status.st_gid != os.getegid())
        if is_open and (each == folder or not status.st_mode & stat.S_ISVTX):
            return f"others can write to {each}"
    return ""
