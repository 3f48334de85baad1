"""SIGTERM and SIGHUP end a command the way Ctrl-C does: with everything put in order."""

from __future__ import annotations

import signal
from types import FrameType


class Terminated(KeyboardInterrupt):
    """Somebody wants this process to end; its text is the name of the signal."""


def raise_on_sigterm() -> None:
    """Have both signals raise `Terminated` in the main thread, unless whoever started us wants them ignored."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _raise)


def _raise(number: int, _frame: FrameType | None) -> None:
    raise Terminated(signal.Signals(number).name)
