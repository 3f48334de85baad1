"""Named points at which a test can make a process fail; one look-up each when none is armed.

A point can end the process or fail a call, which may happen to any process at any time. No setting, here or elsewhere,
skips a step of the protocol: tests that show what a step is for replace it.

`PARALLELRUN_FAILPOINTS="name=action,…"`, read once at import, arms them. Actions:

    kill       SIGKILL this process
    raise      raise OSError, as if the disk were full

`kill:PATH` and `raise:PATH` act once in the life of a cluster: in the process that creates PATH.
Only tests set the variable.
"""

from __future__ import annotations

import errno
import os
import signal
from typing import Final

POINTS: Final = {
    "key.written": "api",
    "key.claimed": "api",
    "quota.reserved": "api",
    "create.before_rename": "api",
    "api.accepted": "api",
    "cancel.recorded": "api",
    "fire.decided": "master",
    "fire.launched": "master",
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
    "step.decided": "master",
    "step.launched": "master",
    "retention.noticed": "master",
    "retention.marked": "master",
    "retention.set_aside": "master",
    "retention.judged": "master",
    "retention.removed": "master",
}
"""Every step of the protocol at which a process may die, in order, with the service that takes it."""


def _parse(text: str) -> dict[str, str]:
    armed = dict(entry.split("=", 1) for entry in text.split(",") if "=" in entry)
    for name, action in armed.items():
        if name not in POINTS or action.partition(":")[0] not in ("kill", "raise"):
            raise ValueError(f"there is no failpoint {name}={action}")
    return armed


_armed = _parse(os.environ.get("PARALLELRUN_FAILPOINTS", ""))


def reach(name: str) -> None:
    """Do what is armed at this point: die, raise, or nothing."""
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
