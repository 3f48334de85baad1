"""The inputs of one mini-batch: files, or ranges of tables, as the manifest of its job has them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Final

from parallelrun_core.answers.mini_batches import InputRange, MiniBatchInputs
from parallelrun_core.errors import CorruptLog, NotFound
from parallelrun_core.folder.manifest import ManifestCursor
from parallelrun_core.untrusted.sanitize import visible
from parallelrun_core.wire import message

_MOST_FILES: Final = 1000


def scheduled_message(folder: Path, mini_batch: int) -> message.Message:
    """Return the message that the manifest has of a mini-batch. Raises NotFound, CorruptLog."""
    with closing(ManifestCursor(folder, first=mini_batch)) as cursor:
        entry = cursor.read()
    if entry is None or entry.mini_batch != mini_batch:
        raise NotFound(f"Mini-batch {mini_batch:,} has not been scheduled yet.")
    return message.decode(entry.raw)


def inputs_of(folder: Path, mini_batch: int) -> MiniBatchInputs:
    """The inputs of a mini-batch, in the order in which `run()` gets them.

    Raises:
        NotFound: there is no such mini-batch yet.
        CorruptLog: the manifest can't be read.
    """
    decoded = scheduled_message(folder, mini_batch)
    if not message.is_described(decoded):
        files = message.files_of(decoded)
        return MiniBatchInputs(items=decoded.items, total=len(files), files=_texts(files[:_MOST_FILES]))
    described = message.described_of(decoded)
    files = message.described_paths(described)
    ranges = [
        InputRange(
            path=_text(piece.path),
            start=piece.start,
            end=None if piece.end < 0 else piece.end,
            first_row=None if piece.first_row < 0 else piece.first_row + piece.left_out,
            rows=None if piece.rows < 0 else piece.rows,
        )
        for piece in described.pieces
    ]
    return MiniBatchInputs(
        items=decoded.items,
        total=len(files) + len(ranges),
        files=_texts(files[:_MOST_FILES]),
        ranges=ranges[:_MOST_FILES],
        keys=[None if key is None else visible(key) for key in described.keys],
    )


def first_input_of(folder: Path, mini_batch: int) -> str:
    """Return the first file, or the file of the first range, of a mini-batch; empty: it can't be read."""
    try:
        inputs = inputs_of(folder, mini_batch)
    except (NotFound, CorruptLog):
        return ""
    return next(iter(inputs.files), "") or next((each.path for each in inputs.ranges), "")


def with_input(folder: Path, mini_batches: Sequence[int], name: str) -> Iterator[int]:
    """Yield those of these mini-batches that have a file with such a name, whatever the case of its letters.

    Args:
        mini_batches: ascending.

    Raises:
        CorruptLog: the manifest can't be read.
    """
    if not mini_batches:
        return
    numbers, part = set(mini_batches), name.casefold()
    with closing(ManifestCursor(folder, first=mini_batches[0])) as cursor:
        while (entry := cursor.read()) is not None and entry.mini_batch <= mini_batches[-1]:
            if entry.mini_batch in numbers and any(part in each.casefold() for each in _names_of(entry.raw)):
                yield entry.mini_batch


def _names_of(raw: bytes) -> Iterator[str]:
    decoded = message.decode(raw)
    if not message.is_described(decoded):
        yield from map(_text, message.files_of(decoded))
        return
    described = message.described_of(decoded)
    yield from map(_text, message.described_paths(described))
    yield from (_text(piece.path) for piece in described.pieces)


def _texts(paths: list[bytes]) -> list[str]:
    return [_text(path) for path in paths]


def _text(path: bytes) -> str:
    return visible(os.fsdecode(path))
