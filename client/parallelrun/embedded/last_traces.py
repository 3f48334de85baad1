"""The trace that the cluster of a single job still has to send when that has ended."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from parallelrun_core.layout import traces_of

_POLL_EVERY_S: Final = 0.05


def wait_for_traces(root: Path, most_s: float) -> bool:
    """Wait until nothing is owed to a collector, for so long; returns whether that is so. Ctrl-C ends the wait.

    Args:
        root: the folder that the services share.
    """
    notes, until = traces_of(root), time.monotonic() + most_s
    with suppress(KeyboardInterrupt):
        while notes.is_dir() and any(notes.iterdir()) and time.monotonic() < until:
            time.sleep(_POLL_EVERY_S)  # who sends them gives no sign
    return not (notes.is_dir() and any(notes.iterdir()))
