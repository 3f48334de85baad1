"""The turns of a pipeline: its leader takes a short one, leaves, and is woken when something has happened.

A leader that waited would keep the place of one, and a master has a bounded number: pipelines in pipelines would take
all of them, and wait for each other. So a pipeline that waits has no process. What it waits for wakes it: the leader of
a step's job, when that has ended, or who cancels it. A wake is counted, and a turn ends only if it has seen all of them
(`lead.lua`); so none is lost between two turns. For one that is lost all the same, with the process that was to send
it, the next turn is asked for after a while.
"""

from __future__ import annotations

from typing import Any

from redis import Redis

from parallelrun_core.store.keys import JobKeys
from parallelrun_core.store.scripts import script


def wake(redis: Redis, job_id: str) -> None:
    """Let a pipeline take its next turn; one that Redis doesn't know is left alone. Raises redis-py's errors."""
    from parallelrun_core.store.rq.wake import ask_for_turn  # RQ takes long to import, and a server starts without it

    keys = JobKeys(job_id)
    term: Any = script(redis, "wake")(keys=[keys.job, keys.leader])
    if term >= 0:
        ask_for_turn(redis, job_id, term=int(term))


def wakes(redis: Redis, job_id: str) -> int:
    """Return how often a pipeline was woken so far."""
    return int(redis.hget(JobKeys(job_id).job, "wakes") or 0)
