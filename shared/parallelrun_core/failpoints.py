"""Named points at which a test may make the product fail; one dict look-up each when none is armed.

`PARALLELRUN_FAILPOINTS="name=action,…"`, read once at import, arms them. Actions:

    kill       SIGKILL this process
    raise      raise OSError, as a disk that is full would
    off        `enabled(name)` answers False: the guarded step is left out (sabotage)

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

SWITCHES: Final = {
    "commit.fence": "the token of a commit, the end of a lost session, and the rule that the first decision wins",
    "lead.term": "the look whether a leader's turn still lasts, in all that it does on Redis",
    "lease.trust": "the end that an agent puts to its workers before Redis lets others in",
    "commit.check_rows": "the look whether the rows of an answer are in its part file",
    "worker.end_orphans": "the end of what a dead worker has left behind outside its process group",
}
"""What can be switched off, and what it is made of."""


def _parse(text: str) -> dict[str, str]:
    armed = dict(entry.split("=", 1) for entry in text.split(",") if "=" in entry)
    unknown = armed.keys() - POINTS.keys() - SWITCHES.keys()
    if unknown:
        raise ValueError(f"there is no failpoint {sorted(unknown)[0]!r}")
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


def enabled(name: str) -> bool:
    """Whether the guarded step is to be done: True unless a test has switched it off."""
    return _armed.get(name) != "off"
