"""The folder of this user's own state on this machine: tokens, and how to reach what runs in the background."""

from __future__ import annotations

import os
from pathlib import Path


def state_folder() -> Path:
    """The folder for this user's state, which may not be there yet.

    Raises:
        RuntimeError: the user has no home folder, and `XDG_STATE_HOME` is not set.
    """
    base = os.environ.get("XDG_STATE_HOME", "")
    # The standard says that a relative path there is to be ignored.
    return (Path(base) if base.startswith("/") else Path.home() / ".local" / "state") / "parallelrun"
