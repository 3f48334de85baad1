"""For entry scripts: `from parallelrun.script import recall, remember, WorkerBroken`.

All of it works where a script runs alone, as in its own unit test.
"""

from __future__ import annotations

from typing import Any


def remember(key: str, value: Any) -> None:
    """Keep an answer that has cost money or time, for later tries, and for jobs that resume from this one.

    It is on the disk when this returns. Outside of a job, it is kept for as long as the process lives.

    Args:
        key: names the question by its content, such as a hash of the request: up to 1,024 bytes.
        value: anything that JSON can hold, up to 4 MiB.

    Raises:
        ValueError: key or value is too long, or is nothing that JSON can hold.
        parallelrun_worker.memory.MemoryFull: this worker has remembered 1 GiB.
        OSError: the disk doesn't take it.
    """
    _memory().remember(key, value)


async def aremember(key: str, value: Any) -> None:
    """Do what `remember` does, without blocking the event loop: calls at the same time share a write to the disk."""
    await _memory().aremember(key, value)


def recall(key: str, default: Any = None) -> Any:
    """Return what was remembered under a key: by any worker of this job, or of the job that it resumes from."""
    return _memory().recall(key, default)


def _memory() -> Any:
    from parallelrun_worker.memory import Memory

    return Memory.of_this_process()


class WorkerBroken(Exception):
    """Raised by an entry script when its worker can't do anything more: its engine is dead, its GPU lost.

    The worker is replaced by a new process, which calls init() again. The mini-batch is run again without having used
    up a try, as long as others succeed in between.
    """
