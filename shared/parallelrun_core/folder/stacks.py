"""Stacks of the workers' threads right now, as each node writes them below logs/sys/stacks/."""

from __future__ import annotations

import msgspec

from parallelrun_core.durable_files import replace_file
from parallelrun_core.layout import Logs

MOST_WORKERS = 64
"""Of one node, in one answer."""


class StackFrame(msgspec.Struct, kw_only=True, frozen=True):
    """A call."""

    file: str
    """Relative to the job's code, if it is in there."""
    line: int
    """0: unknown."""
    function: str


class ThreadStack(msgspec.Struct, kw_only=True, frozen=True):
    """A thread of a worker."""

    is_main: bool
    name: str = ""
    """Python 3.14 and later say it."""
    frames: list[StackFrame]
    """The innermost call first; those of the engine that lead to the script are left out."""


class WorkerStacks(msgspec.Struct, kw_only=True, frozen=True):
    """A worker."""

    process: str
    pid: int
    doing: str
    """`waits_for_work`, `computes`, `waits` (for a disk, a lock, a clock, another process), `unknown`."""
    note: str = ""
    """A remark on the stacks, for people."""
    threads: list[ThreadStack] = []
    """The main thread first."""


class NodeStacks(msgspec.Struct, kw_only=True, frozen=True):
    """The last answer of one node."""

    id: str
    """Id of the request."""
    node: str
    at: float
    """Time when it was answered, in seconds since the epoch on the node's clock."""
    workers: list[WorkerStacks]
    left_out: int = 0
    """Workers beyond `MOST_WORKERS`: ask for them by name."""


def write_stacks(logs: Logs, stacks: NodeStacks) -> None:
    """Replace what this node has said before.

    Raises:
        OSError: it can't be written.
    """
    path = logs.stacks / f"{stacks.node}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, msgspec.json.encode(stacks))


def decode_stacks(text: bytes) -> NodeStacks | None:
    """Return what a node has written; None: it didn't write this."""
    try:
        return msgspec.json.decode(text, type=NodeStacks)
    except msgspec.DecodeError:
        return None
