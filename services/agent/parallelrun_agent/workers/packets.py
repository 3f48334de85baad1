"""From a message to a worker's packet: the agent decodes, so that workers need none of our libraries."""

from __future__ import annotations

import json
import os

from parallelrun_core import message
from parallelrun_core.message import Message
from parallelrun_worker import frames


def packet_of(found: Message) -> tuple[int, bytes]:
    """Kind and payload of the delivery of a full message.

    Raises:
        CorruptLog: its payload can't be read.
    """
    if not message.is_described(found):
        return frames.PATHS, message.paths_of(found)
    described = message.described_of(found)
    # JSON writes a byte of a path that is not UTF-8 as a lone surrogate, which is read back as that byte.
    pieces = [
        [os.fsdecode(piece.path), piece.start, piece.end, piece.is_aligned, piece.first_row]
        for piece in described.pieces
    ]
    paths = [os.fsdecode(path) for path in message.described_paths(described)]
    fields = {"input": described.input, "keys": described.keys, "pieces": pieces, "paths": paths}
    return frames.DESCRIBED, json.dumps(fields).encode()
