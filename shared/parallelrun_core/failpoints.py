"""Named points at which a test may make a process fail; one dict look-up each when none is armed.

A point can end the process or fail a call, which may happen to any process at any time. Nothing here, nor anything
else that can be set, leaves out a step of the protocol: tests that want to see what a step is good for replace it.

`PARALLELRUN_FAILPOINTS="name=action,…"`, read once at import, arms them. Actions:

    kill       SIGKILL this process
    raise      raise OSError, as a disk that is full would

`kill:PATH` and `raise:PATH` act once in the life of a cluster: whoever creates PATH does it.
Nothing outside tests sets the variable.
"""

from __future__ import annotations

import errno
import os
import signal
from typing import Final

POINTS: Final = {
    "adopt.before_rename": "api",
    "api.accepted": "api",
    "lead.acquired": "master",
    "schedule.before_sync": "master",
    "schedule.closed": "master",
    "shuffle.before_rename": "master",
    "shuffle.after_rename": "master",
    "publish.before": "master",
    "publish.after": "master",
    "turn.before": "agent",
    "turn.after": "agent",
    "commit.before_sync": "agent",
    "commit.after_sync": "agent",
    "commit.after_journal": "agent",
    "decide.before_sync": "master",
    "decide.after_sync": "master",
    "decide.after_forget": "master",
    "finish.all_decided": "master",
    "finish.finalizing": "master",
    "concatenate.before_sync": "concatenator",
    "concatenate.before_rename": "concatenator",
    "concatenate.after_rename": "concatenator",
    "finish.before_result": "master",
    "finish.after_result": "master",
    "finish.after_state": "master",
}
"""Every step of the protocol at which a process may die, in order, and whose step it is."""


def _parse(text: str) -> dict[str, str]:
    armed = dict(entry.split("=", 1) for entry in text.split(",") if "=" in entry)
    for name, action in armed.items():
        if name not in POINTS or action.partition(":")[0] not in ("kill", "raise"):
            raise ValueError(f"there is no failpoint {name}={action}")
    return armed


_armed = _parse(os.environ.get("PARALLELRUN_FAILPOINTS", ""))


def reach(name: str) -> None:
    """Do what is armed at this point: nothing, die, or raise."""
    if not _armed or name not in _armed:
        return
    action, _, once = _armed[name].partition(":")
    if once:
        try:
            os.close(os.open(once, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return
    if action == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif action == "raise":
        raise OSError(errno.ENOSPC, f"failpoint {name}")
