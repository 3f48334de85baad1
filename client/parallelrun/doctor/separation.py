"""Checks of the user that runs user code on this machine. On other nodes, their agents say so (`nodes.py`)."""

from __future__ import annotations

import os
import pwd
from collections.abc import Iterator
from typing import Final

from parallelrun_core.wire.finding import Check, Finding, Place, warn

_APART: Final = "run only code that you would run yourself; for separation see SECURITY.md (nodes with worker users)"


def workers(_: Place) -> Iterator[Finding]:
    """Workers of `parallelrun run` and `parallelrun up`."""
    uid = os.geteuid()
    try:
        name = pwd.getpwuid(uid).pw_name
    except KeyError:
        name = f"uid {uid}"
    yield warn(
        f"workers of `parallelrun run` and `up` run as your own user ({name}): jobs can read and change what you can",
        _APART,
    )


CHECKS: Final[tuple[Check, ...]] = (workers,)
