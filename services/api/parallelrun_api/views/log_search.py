"""Lines of logs that have a text: a part of the logs at a time, so that no search takes long."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from parallelrun_api.http.paging import decode_token, encode_token
from parallelrun_api.views.files import ServedFolder
from parallelrun_core.answers.files import LogLine, LogLines
from parallelrun_core.errors import InvalidInput, NotFound, UnsafePath
from parallelrun_core.untrusted.sanitize import visible

MAX_TEXT: Final = 200
_MOST_BYTES: Final = 64 << 20
_MOST_S: Final = 0.5
"""For one page."""
_BLOCK: Final = 1 << 20
_SHOWN: Final = 1000
_LIST: Final = "log-lines"


@dataclass(frozen=True, kw_only=True)
class Search:
    text: str
    is_any_case: bool
    within: str
    """The beginning of the paths of logs; empty: all."""
    limit: int


@dataclass(frozen=True)
class _Position:
    """A line of a log."""

    path: str = ""
    offset: int = 0
    line: int = 1


def search(served: ServedFolder, query: Search, token: str) -> LogLines:
    """The lines of one page.

    Raises:
        InvalidInput: the token is not of this list.
    """
    run = _Run(served, query)
    items: list[LogLine] = []
    for line in run.lines(_position(token)):
        items.append(line)
        if len(items) == query.limit:
            # What follows the line may be in it, too: the next page begins with the line after it.
            break
    next_page = run.next if run.is_broken_off or len(items) == query.limit else None
    return LogLines(
        items=items,
        searched_bytes=run.searched_bytes,
        next_page_token=encode_token(_LIST, next_page.offset, next_page.line, next_page.path) if next_page else None,
    )


class _Run:
    """A page of a search."""

    def __init__(self, served: ServedFolder, query: Search) -> None:
        self._served = served
        self._query = query
        self._needle = self._folded(query.text.encode())
        self._until = time.monotonic() + _MOST_S
        self.searched_bytes = 0
        self.is_broken_off = False
        self.next = _Position()
        """Where the page after this one begins."""

    def lines(self, begin: _Position) -> Iterator[LogLine]:
        """Lines from a position on, until this page has taken long enough."""
        if begin.path:
            yield from self._in_file(begin)
        for entry in self._served.files(begin.path):
            if self.is_broken_off:
                return
            if entry.path.startswith(self._query.within):
                yield from self._in_file(_Position(entry.path))

    def _in_file(self, begin: _Position) -> Iterator[LogLine]:
        try:
            fd = self._served.open(begin.path)
        except (NotFound, UnsafePath):
            return
        try:
            yield from self._in_blocks(fd, begin)
        finally:
            os.close(fd)

    def _in_blocks(self, fd: int, at: _Position) -> Iterator[LogLine]:
        while True:
            if self.searched_bytes >= _MOST_BYTES or time.monotonic() > self._until:
                self.next, self.is_broken_off = at, True
                return
            block = os.pread(fd, _BLOCK, at.offset)
            if len(block) == _BLOCK and (end := block.rfind(b"\n") + 1):
                block = block[:end]
            if not block:
                return
            self.searched_bytes += len(block)
            yield from self._in_block(block, at)
            at = _Position(at.path, at.offset + len(block), at.line + block.count(b"\n"))

    def _in_block(self, block: bytes, at: _Position) -> Iterator[LogLine]:
        folded, counted, line = self._folded(block), 0, at.line
        hit = folded.find(self._needle)
        while hit >= 0:
            begin = block.rfind(b"\n", 0, hit) + 1
            end = block.find(b"\n", hit)
            end = len(block) if end < 0 else end
            line += block.count(b"\n", counted, begin)
            counted = begin
            self.next = _Position(at.path, at.offset + end + 1, line + 1)
            text = block[begin : min(end, begin + 4 * _SHOWN)].decode(errors="replace")
            yield LogLine(
                path=at.path,
                line=line,
                offset=at.offset + begin,
                text=visible(text[:_SHOWN].rstrip("\r"), lines=False),
                is_cut=len(text) > _SHOWN or end - begin > 4 * _SHOWN,
            )
            hit = folded.find(self._needle, end)

    def _folded(self, text: bytes) -> bytes:
        return text.lower() if self._query.is_any_case else text


def _position(token: str) -> _Position:
    if not token:
        return _Position()
    offset, line, path = decode_token(token, _LIST, 3)
    if not all(text.isascii() and text.isdecimal() and len(text) <= 18 for text in (offset, line)):
        raise InvalidInput.at("/query/page_token", f"{token[:50]!r} is not a token of this list")
    return _Position(path, int(offset), int(line))
