"""The agent's own folder on the node's disk: claimed for one agent, and rid of what its workers leave behind."""

from __future__ import annotations

import fcntl
import os
import secrets
import threading
from pathlib import Path

from parallelrun_agent.users.choice import Uids
from parallelrun_agent.users.worker_user import SAME_USER, WorkerUser


def claim_folder(path: Path, uids: Uids | None = None) -> int:
    """Create the agent's folder, private and empty; returns the descriptor that locks it until it is closed.

    Args:
        uids: users that workers may be, whose files an earlier agent may have left there.

    Raises:
        OSError: it belongs to another user, or another agent works there.
    """
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    if path.is_symlink() or path.stat().st_uid != os.getuid():
        raise OSError(f"{path} belongs to another user")
    path.chmod(0o700)
    lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        raise OSError(f"another agent works in {path}: give this one another name or --work-dir") from None
    for leftover in path.iterdir():
        if leftover.is_dir() and not leftover.is_symlink():
            group = leftover.stat().st_gid
            (WorkerUser(group) if uids and group in uids else SAME_USER).remove(leftover)
        else:
            leftover.unlink(missing_ok=True)
    return lock


def throw_away(folder: Path, local_folder: Path, user: WorkerUser = SAME_USER) -> None:
    """Free a folder's name now, and its room soon: a script may leave millions of files, and leases must be renewed.

    An agent that exits waits for the removal.

    Args:
        local_folder: the agent's or one in it, on the same file system. What is being removed is moved there, so that
            the next agent removes what a killed one has left.
        user: whose the files in it are.
    """
    try:
        folder.rmdir()  # most are empty
    except FileNotFoundError:
        return
    except OSError:
        aside = local_folder / f".trash-{secrets.token_hex(8)}"
        try:
            folder.rename(aside)
        except OSError:  # a full disk needs the room more than we need the time
            user.remove(folder)
        else:
            remover = threading.Thread(target=user.remove, args=(aside,), name="trash")
            try:
                remover.start()
            except RuntimeError:  # no more threads may be started here, perhaps because of what a script left running
                user.remove(aside)
