"""From a message to what a worker gets: the agent decodes, so that workers need none of our libraries.

A worker reads local paths and nothing else, and today all paths of messages are local. What is on another kind of
storage is to be staged on this node before `payload_of` returns paths to it (`core/storage`): here, once a message is
decoded and before its payload is encoded, all files of a mini-batch are known, and no worker waits for it yet.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import msgspec

from parallelrun_core import message
from parallelrun_core.folder.manifest import resolve
from parallelrun_core.message import Message
from parallelrun_worker import frames


def payload_of(raw: bytes, folder: Path) -> tuple[int, int, bytes]:
    """Kind, number of items and payload of the delivery of a message.

    Args:
        folder: of the job, for a message that only refers to its manifest.

    Raises:
        CorruptLog: it can't be read.
        OSError, StopIteration: the manifest can't be read, or not there.
    """
    decoded = message.decode(raw)
    if decoded.kind == message.REFERENCE:
        decoded = resolve(folder, decoded)
    if message.is_described(decoded):
        return frames.DESCRIBED, decoded.items, _described(decoded)
    return frames.PATHS, decoded.items, message.paths_of(decoded)


def _described(decoded: Message) -> bytes:
    described = message.described_of(decoded)
    # JSON writes a byte of a path that is not UTF-8 as a lone surrogate, which is read back as that byte.
    pieces = [[os.fsdecode(piece.path), *msgspec.structs.astuple(piece)[1:]] for piece in described.pieces]
    paths = [os.fsdecode(path) for path in message.described_paths(described)]
    fields = {"input": described.input, "keys": described.keys, "pieces": pieces, "paths": paths}
    return json.dumps(fields).encode()
