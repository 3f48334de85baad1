"""Keeps a lease on Redis alive through steps that take longer than the lease.

A leader renews at each of its ticks. Recovering ten million mini-batches, or listing as many files on a slow volume,
takes minutes without one; every leader would lose its term to the next just when it is ready. A concatenation has steps
as long. So a thread renews meanwhile, and it must not do so for a process that is gone in all but name:

- Paused, or on a machine that sleeps: so is this thread. Once another term has begun, renewing is refused
  (`lead.lua` compares terms), as is whatever else an old leader wants of Redis; what it writes goes into files of its
  own term, beyond what its successor has accepted.
- Stuck, as on a volume that doesn't answer: a leader's lease is renewed only when the thread that leads has used CPU
  time since the last beat. A thread that waits in the kernel uses none, so the lease runs out as if the process had
  died. Then the process has to end, too: otherwise one job after the other takes the place of a leader, and keeps it
  for nothing.
- Cut off from Redis: then this thread is, too.

A leader in an endless loop is not distinguished from one that works; its successor would do the same.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from parallelrun_core.errors import Fenced
from parallelrun_core.store.connection import CONNECTION_ERRORS


def own_cpu_clock() -> Callable[[], float]:
    """A clock of the CPU time that the calling thread uses, which other threads may read."""
    clock = time.pthread_getcpuclockid(threading.get_ident())
    return lambda: time.clock_gettime(clock)


def cpu_ms_of_others() -> int:
    """Whole milliseconds of CPU time that all threads but the calling one have used: idle ones use a little, too."""
    return int(1000 * (time.process_time() - time.thread_time()))


@contextmanager
def heartbeat(
    beat: Callable[[], object],
    hung: Callable[[], object],
    *,
    every_s: float,
    cpu_used: Callable[[], float],
    hung_after: int,
    beats_while_idle: bool = False,
) -> Iterator[None]:
    """While this lasts, call `beat` at intervals in a thread, as long as CPU time is used.

    Args:
        beat: may raise one of `CONNECTION_ERRORS`, after which it is called again; after `Fenced` it is not, and
            whoever leads hears of it at their next call to Redis.
        hung: called, in that thread, when no CPU time was used for `hung_after` intervals; again only if it raises one
            of `CONNECTION_ERRORS`, or CPU time was used since.
        cpu_used: called in that thread; its answer grows as CPU time is used.
        beats_while_idle: beat without CPU time, too, until it has hung: what waits for a slow disk uses none.
    """
    ended = threading.Event()

    def beat_while_busy() -> None:
        before, idle, has_hung = cpu_used(), 0, False
        while not ended.wait(every_s):
            now = cpu_used()
            idle = 0 if now > before else idle + 1
            before = now
            with suppress(*CONNECTION_ERRORS):
                if not idle or (beats_while_idle and idle < hung_after):
                    has_hung = False
                    beat()
                elif idle >= hung_after and not has_hung:
                    hung()
                    has_hung = True

    def beat_until_fenced() -> None:
        with suppress(Fenced):
            beat_while_busy()

    thread = threading.Thread(target=beat_until_fenced, name="heartbeat", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()  # a beat after the lease was given back would keep the next one waiting
