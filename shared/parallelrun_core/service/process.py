"""Processes as others see them: how one ends, when it is asked to or with its parent, and what they can see of it.

As a program, `python process.py PARENT_PID COMMAND…`, it becomes COMMAND, which then gets SIGTERM when its parent ends:
that setting survives `exec`. Every service of an embedded cluster starts this way, so this module imports nothing but
the standard library, and little of it.
"""

from __future__ import annotations

import ctypes
import os
import queue
import select
import signal
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress

_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_SET_CHILD_SUBREAPER = 36


class StopSignal:
    """SIGTERM or SIGINT, as something to check and to wait for. Create it in the main thread.

    A handler runs between any two steps of the main thread. A SimpleQueue may be written to at any of them; an Event
    may not: the main thread may be holding its lock.
    """

    def __init__(self) -> None:
        self.came = False
        """Whether the process was asked to end."""
        self._signals: queue.SimpleQueue[None] = queue.SimpleQueue()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._note)

    def _note(self, *_: object) -> None:
        self.came = True
        self._signals.put(None)

    def also_wake(self, number: signal.Signals) -> None:
        """Let this signal end a wait, too, from now on; it asks for no end."""
        signal.signal(number, lambda *_: self._signals.put(None))

    def wait(self, timeout_s: float | None = None) -> None:
        """Return when the process is asked to end, or woken, or after a time."""
        if not self.came:
            with suppress(queue.Empty):
                self._signals.get(timeout=timeout_s)

    def wait_readable(self, fds: Iterable[int], timeout_s: float) -> None:
        """Return when the process is asked to end, when one of the descriptors is readable, or after a time.

        A process that is forked from this one calls `signal.set_wakeup_fd(-1)`, or its signals wake this one.
        """
        wake, wake_end = os.pipe()
        try:
            os.set_blocking(wake_end, False)
            before = signal.set_wakeup_fd(wake_end, warn_on_full_buffer=False)
            try:
                if not self.came:  # a signal that comes from now on is a byte in the pipe
                    select.select([wake, *fds], [], [], max(0.0, timeout_s))
            finally:
                signal.set_wakeup_fd(before)
        finally:
            os.close(wake)
            os.close(wake_end)


def die_with_parent(number: signal.Signals = signal.SIGTERM) -> None:
    """Get this signal, from now on, when the thread that forked this process ends: fork from the main thread.

    Only the kernel can do this, whatever the parent dies of.
    """
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, number)


def hide_memory() -> None:
    """Forbid other processes of the same user, from now on, to trace this one, or to read its memory, environment or
    open files.

    Forked children are hidden, too, and programs that they become are not. Neither leaves a core dump. Only root can
    look in then, as a profiler must.
    """
    ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def become_subreaper() -> bool:
    """Become the parent, from now on, of every descendant that loses its own; returns False if the kernel can't do
    that."""
    return bool(ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)


def children_of(pid: int) -> set[int] | None:
    """Return the children of a process, by all of its threads; None: the kernel doesn't tell, as many don't.

    A child that ends meanwhile can hide another one.
    """
    children: set[int] = set()
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208 - no path is needed
            with open(f"/proc/{pid}/task/{thread}/children", "rb") as file:
                children.update(map(int, file.read().split()))
    except OSError:
        return None
    return children


def descendants() -> set[int] | None:
    """Return the processes below this one; None: the kernel doesn't tell. As with `children_of`, one may be missing."""
    below, heads = set[int](), children_of(os.getpid())
    if heads is None:
        return None
    while heads:
        below |= heads
        heads = {child for pid in heads for child in children_of(pid) or ()}  # None: it has ended
    return below


def be_nice(pid: int, nice: int) -> None:
    """Let others go before a process and what it starts: before its session, where Linux shares out CPUs by session.

    Args:
        nice: by how much, from 0 to 19.
    """
    with suppress(OSError), open(f"/proc/{pid}/autogroup", "w") as file:  # the kernel has none, or it was just written
        file.write(str(nice))
    with suppress(OSError):  # it has ended
        os.setpriority(os.PRIO_PROCESS, pid, min(19, os.getpriority(os.PRIO_PROCESS, pid) + nice))


def show_as(command: list[str]) -> None:
    """Show these words as the command line of this process from now on, as far as there is room for them.

    What is seen of a forked process is the command of the one that it was forked from. If that leaves no room, the
    words are written on into the variables which that one was started with, as `setproctitle` does it, with spaces
    between them: for a process that has other variables by now.
    """
    first, end, last = _places_of_command()
    words = [os.fsencode(word) for word in command]
    text = b"\0".join(words)
    if len(text) < end - first or last == end:
        text = text[: max(0, end - first - 1)].ljust(end - first, b"\0")
    else:
        text = b" ".join(words)[: last - first - 1] + b"\0"
    ctypes.memmove(first, text, len(text))


def show_variables(variables: Mapping[str, str]) -> None:
    """Show these, as far as there is room for them, in place of the variables that this process was started with."""
    _, end, last = _places_of_command()
    text = b"".join(os.fsencode(f"{name}={value}") + b"\0" for name, value in variables.items())
    ctypes.memmove(end, text[max(0, len(text) - last + end) :].rjust(last - end, b"\0"), last - end)


def room_of_command() -> int:
    """Return how many bytes `show_as` has at most in this process."""
    first, _, last = _places_of_command()
    return last - first


def _places_of_command() -> tuple[int, int, int]:
    """Return where this process has its command line: the first byte, its end, and that of the variables behind it."""
    try:
        with open("/proc/self/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:  # no Linux
        return 0, 0, 0
    first, end, variables, last = map(int, fields[45:49])  # arg_start to env_end: fields 48 to 51 of proc(5)
    return first, end, last if variables == end else end


def become(command: list[str], *, parent: int) -> None:
    """Become this command, which gets SIGTERM when the parent ends; never returns.

    Raises:
        SystemExit: the parent has already ended.
    """
    die_with_parent()
    if os.getppid() != parent:  # it ended before the kernel was asked
        sys.exit("the parent process has ended")
    os.execv(command[0], command)  # noqa: S606 - there is no shell, on purpose


if __name__ == "__main__":
    become(sys.argv[2:], parent=int(sys.argv[1]))
