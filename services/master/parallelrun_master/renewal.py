"""Keeps a leader's lease alive through steps that take longer than the lease.

A leader renews at each of its ticks. The books of ten million mini-batches, or the listing of as many files on a slow
volume, take minutes without one; every leader would lose its term to the next just when it is ready. So a thread
renews meanwhile, and it must not do so for a leader that is gone in all but name:

- Paused, or on a machine that sleeps: so is this thread. Once another term has begun, renewing is refused
  (`lead.lua` compares terms), as is whatever else an old leader wants of Redis; what it writes goes into files of its
  own term, beyond what its successor has accepted.
- Stuck, as on a volume that doesn't answer: renewed is only when the thread that leads has used CPU time since the
  last look. A thread that waits in the kernel uses none, so the lease runs out as if the process had died. Then the
  process has to end, too: else one job after the other takes the place of a leader, and keeps it for nothing.
- Cut off from Redis: then this thread is, too.

A leader that goes round for ever in a step is not told from one that works; its successor would do the same.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final

from parallelrun_core.errors import Fenced
from parallelrun_core.store.connection import CONNECTION_ERRORS

LOOKS_PER_LEASE: Final = 5


def own_cpu_clock() -> Callable[[], float]:
    """What tells how much CPU time the calling thread has used, also to other threads."""
    clock = time.pthread_getcpuclockid(threading.get_ident())
    return lambda: time.clock_gettime(clock)


@contextmanager
def renewing(
    renew: Callable[[], object],
    every_s: float,
    used_cpu_s: Callable[[], float],
    hung: Callable[[], object] = lambda: None,
) -> Iterator[None]:
    """While this lasts, call `renew` so often in a thread, but only when CPU time was used in between.

    Args:
        renew: may raise one of `CONNECTION_ERRORS`, after which it is called again; after `Fenced` it is not, and
            whoever leads hears of it at the next thing that they want.
        hung: called, in that thread, when no CPU time was used for a whole lease; again only if it raises one of
            `CONNECTION_ERRORS`, or CPU time was used since.
    """
    ended = threading.Event()

    def look() -> None:
        before, idle, told = used_cpu_s(), 0, False
        while not ended.wait(every_s):
            now = used_cpu_s()
            idle = 0 if now > before else idle + 1
            before = now
            with suppress(*CONNECTION_ERRORS):
                if not idle:
                    told = False
                    renew()
                elif idle >= LOOKS_PER_LEASE and not told:
                    hung()
                    told = True

    def look_until_fenced() -> None:
        with suppress(Fenced):
            look()

    thread = threading.Thread(target=look_until_fenced, name="renewal", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()  # a renewal after the leader has resigned would keep the next one waiting
