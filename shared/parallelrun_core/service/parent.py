"""`python -I -S parent.py FD PID…`: what a template (`template.py`) becomes when its services are forked: their parent.

A template has 17 MB that are needed for forking alone, 12 of them its own by then: what services share with it, they
write to. The same process with another program has 3, and still tells the owner of the ends of these services on the
channel FD. Standard library only, and little of it. It gets no variables, and nobody looks into it: the environment of
a template may have secrets.
"""

from __future__ import annotations

import ctypes
import os
import select
import sys

_PACKET_BYTES = 64
_PR_SET_DUMPABLE = 4


def has_ended(channel: int, pid: int) -> bool:
    """Return whether this service has ended, and tell the owner how; until it is reaped, no other has its id."""
    ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT | os.WNOHANG)
    if ended is None:
        return False
    code = ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status
    os.write(channel, f"ended {pid} {code}".encode())
    return True


def can_be_parent() -> bool:
    """Return whether this kernel lets a process wait for ends as `serve` does."""
    try:
        os.close(os.pidfd_open(os.getpid()))
    except (AttributeError, OSError):
        return False
    return True


def serve(channel: int, pids: list[int]) -> None:
    """Tell of the ends of services, and reap them, until the owner closes the channel."""
    poll = select.poll()
    poll.register(channel, select.POLLIN)
    running = {os.pidfd_open(pid): pid for pid in pids}
    for fd in running:
        poll.register(fd, select.POLLIN)
    while True:
        for fd, _ in poll.poll():
            if fd in running:
                if has_ended(channel, running[fd]):
                    poll.unregister(fd)
                    os.close(fd)
                    del running[fd]
            elif packet := os.read(channel, _PACKET_BYTES):
                os.waitpid(int(packet.split()[1]), 0)  # it is told nothing but `reap PID`
            else:
                return


if __name__ == "__main__":
    ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)  # as `process.hide_memory`, which needs packages
    try:
        serve(int(sys.argv[1]), [int(pid) for pid in sys.argv[2:]])
    except ConnectionError:  # the owner has been killed
        sys.exit(0)
