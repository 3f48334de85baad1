"""The beginning of one input of a mini-batch, as it is now: a picture whole, of anything else the first bytes.

The path is that of the job's manifest and never the caller's; what was opened is checked, as files move.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from parallelrun_api.views.downloads import BYTES, image_type_of
from parallelrun_api.views.mini_batch_inputs import scheduled_message
from parallelrun_core.errors import NotFound, UnsafePath
from parallelrun_core.storage.location import is_url
from parallelrun_core.storage.path_rule import PathRule
from parallelrun_core.wire import message

MAX_IMAGE_BYTES: Final = 10 << 20
MAX_HEAD_BYTES: Final = 16 << 10


class InputPlace(NamedTuple):
    """A file of a mini-batch, and where in it its part begins."""

    path: bytes
    start: int


class InputContent(NamedTuple):
    content: bytes
    media_type: str
    name: str


def place_of(folder: Path, mini_batch: int, number: int) -> InputPlace:
    """Return where an input of a mini-batch is.

    Args:
        number: counted from 0, files before ranges of tables, as the list of inputs has them.

    Raises:
        NotFound: there is no such mini-batch yet, or it has fewer inputs.
        CorruptLog: the manifest can't be read.
    """
    decoded = scheduled_message(folder, mini_batch)
    if message.is_described(decoded):
        described = message.described_of(decoded)
        places = [InputPlace(path, 0) for path in message.described_paths(described)]
        places += [InputPlace(piece.path, piece.start if piece.first_row < 0 else 0) for piece in described.pieces]
    else:
        places = [InputPlace(path, 0) for path in message.files_of(decoded)]
    if number >= len(places):
        raise NotFound(f"Mini-batch {mini_batch:,} has {len(places):,} inputs.")
    return places[number]


def content_of(place: InputPlace, rule: PathRule) -> InputContent:
    """Read the beginning of an input.

    Raises:
        NotFound: it is in an object store, is gone, or is no file.
        UnsafePath: jobs may not read it.
    """
    if is_url(os.fsdecode(place.path)):
        raise NotFound("This input is in an object store, for which the server has no credentials.")
    with _opened(place.path, rule) as fd:
        is_small = os.fstat(fd).st_size <= MAX_IMAGE_BYTES
        media_type = image_type_of(fd) if is_small and place.start == 0 else BYTES
        most = MAX_HEAD_BYTES if media_type == BYTES else MAX_IMAGE_BYTES
        return InputContent(os.pread(fd, most, place.start), media_type, os.path.basename(os.fsdecode(place.path)))


@contextmanager
def _opened(path: bytes, rule: PathRule) -> Iterator[int]:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        raise NotFound("This input is not there any more, or can't be read by the server.") from error
    try:
        try:
            rule.check_opened(fd, path)
        except UnsafePath as error:
            raise NotFound("This input is now outside of what jobs may read.") from error
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise NotFound("This input is no file.")
        yield fd
    finally:
        os.close(fd)
