"""Threads, of which a machine may allow no more: what scripts leave running on a node counts, too."""

from __future__ import annotations

import errno
import threading
from collections.abc import Callable


def started_thread(name: str, target: Callable[..., object], *arguments: object) -> threading.Thread:
    """Return a thread that has been started. The end of the process doesn't wait for it.

    Raises:
        OSError: the machine allows no more threads.
    """
    thread = threading.Thread(target=target, args=arguments, name=name, daemon=True)
    try:
        thread.start()
    except RuntimeError as error:
        raise OSError(errno.EAGAIN, str(error)) from error
    return thread
