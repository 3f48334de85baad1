"""`python with_parent.py PARENT_PID COMMAND…`: becomes COMMAND, and is told to end when its parent ends.

Only the kernel can see to that, whatever the parent dies of, and its promise to us outlives the `exec`.
Standard library alone, and no more of it than needed: every service of an embedded cluster starts through here.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main() -> None:
    """Make the wish known to the kernel, then become the command."""
    parent, *command = sys.argv[1:]
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != int(parent):  # it ended before the kernel knew of our wish
        sys.exit("the parent process has ended")
    os.execv(command[0], command)  # noqa: S606 - there is no shell, on purpose


if __name__ == "__main__":
    main()
