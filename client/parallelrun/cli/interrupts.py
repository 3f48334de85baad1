"""SIGTERM and SIGHUP end a command as Ctrl-C does: with all cleanup."""

from __future__ import annotations

import signal
from types import FrameType


class Terminated(KeyboardInterrupt):
    """A signal has asked this process to end; its text is the name of the signal."""


def raise_on_sigterm() -> list[Terminated]:
    """Make both signals raise `Terminated` in the main thread, unless this process was started to ignore them.

    Returns:
        What they have raised: empty, until one comes.
    """
    raised: list[Terminated] = []

    def raise_terminated(number: int, _frame: FrameType | None) -> None:
        raised.append(Terminated(signal.Signals(number).name))
        raise raised[-1]

    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, raise_terminated)
    return raised
