"""A short description of a mini-batch, and its number of items, for the record of a failed try."""

from __future__ import annotations

import msgspec

from parallelrun_core.errors import ParallelRunError
from parallelrun_core.wire import message

_MOST_FILES = 3


def detail_of(mini_batch: int, raw: bytes) -> str:
    """JSON with the first files of a mini-batch and the values of its partition keys; empty when it can't be read."""
    try:
        decoded = message.decode(raw)
        if decoded.kind == message.REFERENCE:  # a long list, which is in the manifest
            return ""
        paths = message.files_of(decoded)
        keys = message.described_of(decoded).keys if message.is_described(decoded) else []
    except ParallelRunError:
        return ""
    files = [path.decode("utf-8", "backslashreplace") for path in dict.fromkeys(paths)][:_MOST_FILES]
    described = {"id": mini_batch, "items": decoded.items, "files": files, **({"keys": keys} if keys else {})}
    return msgspec.json.encode(described).decode()


def items_of(raw: bytes) -> int:
    """The number of items that a message says its mini-batch has; 0: nobody has counted them, as of most tables."""
    try:
        return message.decode(raw).items
    except ParallelRunError:
        return 0
