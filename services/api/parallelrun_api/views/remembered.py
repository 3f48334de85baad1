"""The answers that the scripts of a job have remembered for later tries: a line each, in files of its logs.

Users' code writes these files, so a line that isn't one of `remember()` counts as none.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

import msgspec

from parallelrun_api.http.paging import decode_token, encode_token
from parallelrun_core.answers.remembered import RememberedAnswer, RememberedPage
from parallelrun_core.errors import InvalidInput, NotFound, UnsafePath
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.layout import LOGS, Logs
from parallelrun_core.untrusted.paths import open_beneath

_LIST: Final = "remembered"
_LONGEST_LINE: Final = 5 << 20
"""More than a key and a value may have."""
_SEARCHED_BYTES: Final = 64 << 20
"""Bytes that one page looks at."""
_SHOWN: Final = 200
_SUFFIX: Final = ".jsonl"


class MemoryFile(NamedTuple):
    """A file in which a worker has remembered answers."""

    path: str
    """Its path below the job's folder."""
    bytes: int

    @property
    def log(self) -> str:
        """Return its path below the logs."""
        return self.path.removeprefix(f"{LOGS}/")


class _Line(msgspec.Struct):
    key: str
    value: msgspec.Raw


_DECODER: Final = msgspec.json.Decoder(_Line)


def memory_files(folder: JobFolder) -> list[MemoryFile]:
    """Return all such files of a job, by path; links and what isn't a file are left out."""
    below = Logs(Path(LOGS)).user_memory
    return [
        MemoryFile(f"{below}/{node}/{name}", size)
        for node, _ in _entries(folder, str(below), stat.S_ISDIR)
        for name, size in _entries(folder, f"{below}/{node}", stat.S_ISREG)
        if name.endswith(_SUFFIX)
    ]


def key_of(line: bytes) -> str | None:
    """Return the key of a line; None: it is torn, or none of `remember()`."""
    parsed = _parsed(line)
    return None if parsed is None else parsed.key


def lines_of(file: BinaryIO, begin: int = 0) -> Iterator[tuple[int, bytes]]:
    """The whole lines of a file, each with its offset; what is being written is left out."""
    file.seek(begin)
    offset = begin
    while (line := file.readline(_LONGEST_LINE)).endswith(b"\n") or len(line) == _LONGEST_LINE:
        yield offset, line
        offset += len(line)


def remembered(folder: JobFolder, *, text: str, limit: int, token: str) -> RememberedPage:
    """Return one page of what a job remembers, by file, in each as it was written.

    Args:
        text: only keys with this in them.

    Raises:
        InvalidInput: the token is not one of this list.
    """
    begin, first = _position(token)
    files = memory_files(folder)
    items: list[RememberedAnswer] = []
    searched, next_token = 0, None
    for each in files:
        if each.path < first:
            continue
        try:
            file = os.fdopen(open_beneath(folder.path, each.path), "rb")
        except (NotFound, UnsafePath):  # gone, or closed to this process
            continue
        with file:
            for offset, line in lines_of(file, begin if each.path == first else 0):
                if len(items) == limit or searched > _SEARCHED_BYTES:
                    next_token = encode_token(_LIST, offset, each.path)
                    break
                searched += len(line)
                parsed = _parsed(line)
                if parsed is not None and text in parsed.key:
                    items.append(_shown(parsed, len(line), each.log))
        if next_token:
            break
    return RememberedPage(items=items, bytes=sum(each.bytes for each in files), next_page_token=next_token)


def _position(token: str) -> tuple[int, str]:
    """Return the offset at which a page begins, and the path of its file."""
    if not token:
        return 0, ""
    offset, path = decode_token(token, _LIST, 2)
    if not (offset.isascii() and offset.isdecimal() and len(offset) <= 18):
        raise InvalidInput.at("/query/page_token", f"{token[:50]!r} is not a token of this list")
    return int(offset), path


def _entries(folder: JobFolder, below: str, is_kind: Callable[[int], bool]) -> list[tuple[str, int]]:
    """Names and sizes of what is in a folder and of that kind, by name."""
    try:
        fd = open_beneath(folder.path, below, os.O_RDONLY | os.O_DIRECTORY)
    except (NotFound, UnsafePath):
        return []
    try:
        with os.scandir(fd) as scan:
            statuses = sorted((entry.name, entry.stat(follow_symlinks=False)) for entry in scan)
    except OSError:  # one was removed a moment ago
        return []
    finally:
        os.close(fd)
    return [(name, status.st_size) for name, status in statuses if is_kind(status.st_mode)]


def _parsed(line: bytes) -> _Line | None:
    try:
        return _DECODER.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def _shown(line: _Line, size: int, log: str) -> RememberedAnswer:
    value = bytes(line.value)[: 4 * _SHOWN].decode(errors="ignore")[:_SHOWN]
    return RememberedAnswer(key=line.key, bytes=size, value_begin=value, log=log)
