"""Named points at which a test may make the product fail; they cost one dict look-up when none is armed.

`PARALLELRUN_FAILPOINTS="name=action,…"`, read once at import, arms them. Actions:

    kill       SIGKILL this process
    raise      raise OSError
    off        `enabled(name)` answers False: the guarded step is left out (sabotage twins)

Nothing outside tests sets the variable.
"""

from __future__ import annotations

import os
import signal


def _parse(text: str) -> dict[str, str]:
    return dict(entry.split("=", 1) for entry in text.split(",") if "=" in entry)


_armed = _parse(os.environ.get("PARALLELRUN_FAILPOINTS", ""))


def reach(name: str) -> None:
    """Do what is armed at this point: nothing, die, or raise."""
    if not _armed:
        return
    match _armed.get(name):
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "raise":
            raise OSError(f"failpoint {name}")


def enabled(name: str) -> bool:
    """Whether the guarded step is to be done: True unless a test has switched it off."""
    return _armed.get(name) != "off"
