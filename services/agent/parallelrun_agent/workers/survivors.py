"""Ends what has survived a killed agent on its node: processes that its workers have started.

The kernel kills the workers themselves with their agent, but not their children. So every worker's environment, which
its descendants inherit, names the agent that it belongs to; and an agent that starts ends whatever belongs to a dead
one that had the same local folder. One that has cleared its
environment is not recognized.
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path

from parallelrun_agent.node.proc import process_ids, stat_of
from parallelrun_agent.users.choice import Uids
from parallelrun_agent.users.worker_user import SAME_USER, WorkerUser
from parallelrun_core.service.telemetry import logger

log = logger()

MARK = "_PARALLELRUN_AGENT"


def mark(folder: Path) -> str:
    """The variable's value for what belongs to this process: pid namespace, id, when it started, local folder."""
    return f"{_namespace()}:{os.getpid()}:{_started(os.getpid())}:{folder.absolute()}"


def end_survivors(folder: Path, uids: Uids | None = None) -> None:
    """Kill the processes of this local folder whose agent is dead.

    Those of other pid namespaces are left alone: it isn't known here whether their agents live.
    """
    its_folder = str(folder.absolute())
    ended = [pid for pid in process_ids() if _is_left_behind(pid, its_folder, uids) and _kill(pid)]
    if ended:
        log.warning("leftovers_ended", pids=ended)


def _is_left_behind(pid: int, folder: str, uids: Uids | None) -> bool:
    process = Path(f"/proc/{pid}")
    try:
        owner = process.stat().st_uid
        with (WorkerUser(owner) if uids and owner in uids else SAME_USER).acting():
            variables = (process / "environ").read_bytes().split(b"\0")
    except OSError:  # it has just ended, or belongs to another user
        return False
    start = f"{MARK}=".encode()
    value = next((os.fsdecode(each[len(start) :]) for each in variables if each.startswith(start)), "")
    namespace, agent, started, its_folder = (*value.split(":", 3), "", "", "", "")[:4]
    if namespace != _namespace() or its_folder != folder or not agent.isdecimal():
        return False
    return _started(int(agent)) != started


def _kill(pid: int) -> bool:
    with suppress(OSError):
        os.kill(pid, signal.SIGKILL)
        return True
    return False


def _namespace() -> str:
    return str(os.stat("/proc/self/ns/pid").st_ino)


def _started(pid: int) -> str:
    """Return when a process started; empty when there is none."""
    stat = stat_of(pid)
    return str(stat.started) if stat else ""
