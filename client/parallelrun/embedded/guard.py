"""Ends what a cluster leaves running: processes that outlive those that started them, known by a mark.

A service that was killed can't end its children, and a user's program may start a process in a session of its
own. All of them inherit the environment, which has the mark. That of a service can't be read: it has the mark on its
command line, too.

As a program, `python guard.py MARK FOLDER`, it guards a cluster. A byte on stdin says that the cluster was stopped
in order. If stdin ends without one, the cluster's owner was killed: the services, which the kernel has signaled, get
some time to end; then every process with the mark is killed, and the folder is removed.

Standard library only, and most of it once it is needed: a guard starts with every cluster, should cost next to nothing,
and stays for as long as the cluster does.
"""

from __future__ import annotations

import os
import sys
import time

GRACE_S = 7.0
"""How long services may take to end after their owner was killed."""

_PROCESSES = "/proc"
_PATIENCE_S = 5.0
_POLL_EVERY_S = 0.01
_POLL_IN_PEACE_S = 0.1


def option(mark: str) -> tuple[str, str]:
    """An option of Python's, without meaning to it, that puts the mark on a service's command line: its first one."""
    return "-X", f"marked-{mark}"


def marked(mark: str) -> list[int]:
    """The processes of this user that were started with `mark`, a `NAME=VALUE`, in their environment or as `option`.

    Always empty on systems other than Linux, which don't say.
    """
    if not os.path.isdir(_PROCESSES):
        return []
    mark_bytes, as_option = os.fsencode(mark), [os.fsencode(word) for word in option(mark)]
    as_one_word = b" ".join(as_option)  # as `show_as` writes it where there is little room
    return [
        int(name)
        for name in os.listdir(_PROCESSES)  # noqa: PTH208 - pathlib would be most of a guard's memory
        # Further back, it is a word of somebody who looks for such processes.
        if name.isdigit()
        and (
            mark_bytes in _words(name, "environ")
            or (command := _words(name, "cmdline"))[1:3] == as_option
            or as_one_word in b"".join(command[:1])
        )
    ]


def _words(process: str, name: str) -> list[bytes]:
    try:
        with open(f"{_PROCESSES}/{process}/{name}", "rb") as file:
            return file.read().split(b"\0")
    except OSError:
        return []  # another user's, hidden, or gone


def kill_marked(mark: str) -> None:
    """Kill all marked processes, and those that they start meanwhile."""
    import signal
    from contextlib import suppress

    deadline = time.monotonic() + _PATIENCE_S
    while (pids := marked(mark)) and time.monotonic() < deadline:
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(_POLL_EVERY_S)  # they are not our children, so there is nothing to wait for


def guard(mark: str, folder: str) -> None:
    """Wait until the owner has stopped in order or was killed; in the second case, end what it left behind."""
    if os.read(0, 1):
        return
    import shutil

    deadline = time.monotonic() + GRACE_S
    while marked(mark) and time.monotonic() < deadline:
        time.sleep(_POLL_IN_PEACE_S)
    kill_marked(mark)
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    guard(*sys.argv[1:])
