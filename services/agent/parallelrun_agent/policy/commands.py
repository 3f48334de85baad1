"""What the machine of a job asks for; `NodeJob` and its crew do it, in this order. Pure data, no I/O."""

from __future__ import annotations

import msgspec

from parallelrun_agent.policy.in_flight import Assignment
from parallelrun_agent.policy.worker import Worker
from parallelrun_core.outcome import Failure, Outcome


class Deliver(msgspec.Struct, frozen=True):
    """Hand this mini-batch over; the worker has it in flight already."""

    worker: Worker
    assignment: Assignment


class TakeBack(msgspec.Struct, frozen=True):
    """Take back what the worker has not read yet, and tell the machine by `taken_back`."""

    worker: Worker


class Commit(msgspec.Struct, frozen=True):
    """Make this outcome durable, with the rows that this worker has written for it."""

    outcome: Outcome
    worker: Worker | None


class End(msgspec.Struct, frozen=True):
    """Ask for an orderly end: it finishes what it has, calls shutdown(), and exits."""

    worker: Worker


class DumpStacks(msgspec.Struct, frozen=True):
    """Let it write to its stderr where each of its threads stands."""

    worker: Worker
    why: str


class Kill(msgspec.Struct, frozen=True):
    """End it and its process group now. Its exit follows as an event."""

    worker: Worker


class ReportInitFailure(msgspec.Struct, frozen=True):
    """Let the leader and the user know that a worker didn't get through init()."""

    process: str
    failure: Failure


class Abandon(msgspec.Struct, frozen=True):
    """The session is over. End every worker and forget what they did, then join anew."""

    why: str
    held: int
    """How many deliveries it held."""


Command = Deliver | TakeBack | Commit | End | DumpStacks | Kill | ReportInitFailure | Abandon
