"""Stacks of the workers' threads right now, as each node writes them below logs/sys/stacks/."""

from __future__ import annotations

import msgspec

from parallelrun_core.answers.stacks import WorkerStacks
from parallelrun_core.durable_files import replace_file
from parallelrun_core.layout import Logs

MOST_WORKERS = 64
"""Of one node, in one answer."""


class StacksRecord(msgspec.Struct, kw_only=True, frozen=True):
    """The last answer of one node."""

    id: str
    """Id of the request."""
    node: str
    at: float
    """Time when it was answered, in seconds since the epoch on the node's clock."""
    workers: list[WorkerStacks]
    left_out: int = 0
    """Workers beyond `MOST_WORKERS`: ask for them by name."""


def write_stacks(logs: Logs, stacks: StacksRecord) -> None:
    """Replace what this node has said before.

    Raises:
        OSError: it can't be written.
    """
    path = logs.stacks / f"{stacks.node}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, msgspec.json.encode(stacks))


def decode_stacks(text: bytes) -> StacksRecord | None:
    """Return what a node has written; None: it didn't write this."""
    try:
        return msgspec.json.decode(text, type=StacksRecord)
    except msgspec.DecodeError:
        return None
