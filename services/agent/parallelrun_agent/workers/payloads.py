"""Payloads for workers, made of messages: the agent decodes, so that workers need none of our libraries.

A worker reads local paths and nothing else. What is on another kind of storage is staged first, and its payload comes
from `parallelrun_agent/staging/mini_batches.py`.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from parallelrun_core.folder.manifest import resolve
from parallelrun_core.wire import message
from parallelrun_core.wire.message import Message
from parallelrun_worker import frames


def payload_of(raw: bytes, folder: Path) -> tuple[int, int, bytes]:
    """Kind, number of items and payload of the delivery of a message.

    Args:
        folder: of the job, for a message that only refers to its manifest.

    Raises:
        CorruptLog: it can't be read.
        OSError, StopIteration: the manifest can't be read, or not there.
    """
    of = decoded(raw, folder)
    if message.is_described(of):
        return frames.DESCRIBED, of.items, _described(of)
    return frames.PATHS, of.items, message.paths_of(of)


def decoded(raw: bytes, folder: Path) -> Message:
    """The full message; raises what `payload_of` raises."""
    decoded_message = message.decode(raw)
    return resolve(folder, decoded_message) if decoded_message.kind == message.REFERENCE else decoded_message


def _described(of: Message) -> bytes:
    described = message.described_of(of)
    # JSON writes a byte of a path that is not UTF-8 as a lone surrogate, which is read back as that byte.
    pieces = [(os.fsdecode(piece.path), *piece.rest) for piece in described.pieces]
    paths = [os.fsdecode(path) for path in message.described_paths(described)]
    fields = {"input": described.input, "keys": described.keys, "pieces": pieces, "paths": paths}
    return json.dumps(fields).encode()
