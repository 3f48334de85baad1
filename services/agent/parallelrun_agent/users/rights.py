"""The capabilities that an agent needs to have workers of other users, and how it keeps no more than those.

- CAP_SETUID and CAP_SETGID: to start a process as another user, and to do something with files as that user.
- CAP_KILL: to end such processes. The kernel, too, ends them on the agent's death only if the agent could.

It changes no file's owner (CAP_CHOWN) and passes over no file's mode (CAP_DAC_OVERRIDE): see `worker_user.py`.
"""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from typing import Final

from parallelrun_agent.users.choice import Uids

_KILL, _SETGID, _SETUID = 5, 6, 7
_NEEDED: Final = {_SETUID: "CAP_SETUID", _SETGID: "CAP_SETGID", _KILL: "CAP_KILL"}
_PR_SET_KEEPCAPS: Final = 8
_PR_SET_NO_NEW_PRIVS: Final = 38
_VERSION_3: Final = 0x20080522


class NotPossible(OSError):
    """This process may not have workers of other users."""


class _Header(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _Data(ctypes.Structure):
    _fields_ = (("effective", ctypes.c_uint32), ("permitted", ctypes.c_uint32), ("inheritable", ctypes.c_uint32))


def become(uid: int, gid: int) -> None:
    """Be this user from now on, with nothing of root's but what workers of other users take. Before threads begin.

    Raises:
        NotPossible: the process is neither root nor this user already, or root without these rights.
    """
    if os.getuid() == uid and os.getgid() == gid:
        return
    libc = ctypes.CDLL(None, use_errno=True)
    try:
        _check(libc.prctl(_PR_SET_KEEPCAPS, 1, 0, 0, 0))
        os.setgroups([])
        os.setresgid(gid, gid, gid)
        os.setresuid(uid, uid, uid)
        mask = sum(1 << number for number in _NEEDED)
        _check(libc.capset(ctypes.byref(_Header(_VERSION_3, 0)), ctypes.byref((_Data * 2)(_Data(mask, mask, 0)))))
    except OSError as error:
        raise NotPossible(f"can't become user {uid} and group {gid}: {error.strerror}; {_ADVICE}") from None


def check_and_restrict() -> None:
    """Make sure that this process may have workers of other users, and that nothing below it ever gains more rights.

    Raises:
        NotPossible: it may not; the message says what to do.
    """
    effective = _effective()
    missing = [name for number, name in _NEEDED.items() if not effective >> number & 1]
    if missing:
        raise NotPossible(f"--worker-uids needs {', '.join(missing)}; {_ADVICE}")
    try:
        os.setgroups([])  # they would count while the agent acts as a worker's user
    except OSError as error:
        raise NotPossible(f"--worker-uids can't be used here: groups can't be set ({error.strerror})") from None
    _check(ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))


_ADVICE: Final = (
    "start the agent as root or with these capabilities, as docker-compose.yml does, or leave out --worker-uids, "
    "so that workers are the agent's own user"
)


def check_apart(uids: Uids, root: Path) -> None:
    """Make sure that no worker is the user of the services.

    Raises:
        NotPossible: one could be.
    """
    for id_in_use in {os.geteuid(), os.getegid(), root.stat().st_uid}:
        if id_in_use in uids:
            raise NotPossible(f"--worker-uids has {id_in_use}, which is the services' own; choose ids that nobody has")


def _effective() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1], 16) for line in lines if line.startswith("CapEff:"))


def _check(done: int) -> None:
    if done != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
