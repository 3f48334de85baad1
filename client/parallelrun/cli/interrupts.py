"""SIGTERM and SIGHUP end a command as Ctrl-C does: with all cleanup."""

from __future__ import annotations

import signal
from types import FrameType


class Terminated(KeyboardInterrupt):
    """A signal has asked this process to end; its text is the name of the signal."""


def raise_on_sigterm() -> None:
    """Make both signals raise `Terminated` in the main thread, unless this process was started to ignore them."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _raise)


def _raise(number: int, _frame: FrameType | None) -> None:
    raise Terminated(signal.Signals(number).name)
