"""Small matters of a service's process."""

from __future__ import annotations

import ctypes
import os
import signal

_PR_SET_PDEATHSIG = 1


def die_with_parent_if_told() -> None:
    """With PARALLELRUN_EXIT_WITH_PARENT=1, end when the process that started this one ends.

    A cluster whose owner was killed must not leave services behind; only the kernel can see to that.
    """
    if os.environ.get("PARALLELRUN_EXIT_WITH_PARENT") == "1":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
