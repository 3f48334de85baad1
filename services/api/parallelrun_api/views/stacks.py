"""The stacks that nodes have shown, from what they have written into the job folder."""

from __future__ import annotations

from itertools import islice
from typing import Final

from parallelrun_api.views.files import ServedFolder
from parallelrun_core.answers.answer import answer_of, rfc3339
from parallelrun_core.answers.stacks import NodeStacks, StacksReport
from parallelrun_core.folder.stacks import decode_stacks

_MOST_FILES: Final = 2000
_MOST_BYTES: Final = 16 << 20
"""Of one; of all together, as of one: the rest is left out."""


def stacks_report(served: ServedFolder) -> StacksReport:
    """Return what all of them say, by node. What isn't an answer of a node, or is gone, is left out."""
    items: list[NodeStacks] = []
    remaining_bytes = _MOST_BYTES
    for entry in islice(served.files(), _MOST_FILES):
        text = served.head(entry.path, remaining_bytes)
        remaining_bytes -= len(text)
        node_stacks = decode_stacks(text)
        if node_stacks is not None:
            items.append(answer_of(NodeStacks, node_stacks, at=rfc3339(node_stacks.at)))
    return StacksReport(items=items)
