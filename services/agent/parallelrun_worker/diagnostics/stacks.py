"""Shows where the process is when the agent asks, without harm to what runs in it.

At one signal, faulthandler writes the stack of the main thread: in C, so also while the interpreter is in C code. It
may not do that for other threads, which go on meanwhile: reading what they change has ended processes. So at another
signal, Python writes all of them, once the main thread runs Python again and so holds the lock of the interpreter.
"""

from __future__ import annotations

import faulthandler
import os
import signal

from parallelrun_worker import frames


def show_on_signals(fd: int) -> None:
    """Write stacks there, from now on, whenever a signal asks for them."""
    faulthandler.register(frames.SHOW_STACK, fd, all_threads=False)
    status = os.fstat(fd)

    def show(*_: object) -> None:
        try:
            # The script may have closed it and have a file of its own there. And the agent may not wait any more.
            is_ours = os.path.samestat(os.fstat(fd), status)
            if is_ours and os.pread(fd, 1, frames.STACKS_BYTES) == frames.STACKS_WANTED:
                faulthandler.dump_traceback(fd)
                os.pwrite(fd, frames.STACKS_COMPLETE, frames.STACKS_BYTES)
        except OSError:
            pass

    signal.signal(frames.SHOW_THREADS, show)
