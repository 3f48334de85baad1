"""`python with_parent.py PARENT_PID COMMAND…`: becomes COMMAND, and gets SIGTERM when its parent ends.

Only the kernel can do that however the parent ends, and this setting survives `exec`.
Standard library only, and as little of it as possible: every service of an embedded cluster starts through here.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main() -> None:
    """Ask the kernel for the signal, then become the command."""
    parent, *command = sys.argv[1:]
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != int(parent):  # it ended before the kernel was asked
        sys.exit("the parent process has ended")
    os.execv(command[0], command)  # noqa: S606 - there is no shell, on purpose


if __name__ == "__main__":
    main()
