"""The logs of all workers as one, by time: a page of lines after or before a time, however many logs there are.

Of each log, one block is read where the page begins. Lines count up to the end of the block that ends first: what
comes after it might be before a line that was not read. The next page begins there.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final, Literal

from parallelrun_api.http.paging import decode_token, encode_token
from parallelrun_api.views.files import ServedFolder
from parallelrun_api.views.timed_lines import (
    TimedLine,
    TimeMark,
    first_line,
    first_of,
    last_of,
    last_timed,
    lines_with_times,
    marks_from,
    printed_lines,
    time_of,
)
from parallelrun_core.answers.answer import rfc3339
from parallelrun_core.answers.files import MergedLine, MergedLines
from parallelrun_core.errors import InvalidInput, NotFound, UnsafePath
from parallelrun_core.untrusted.sanitize import visible

LEVELS: Final = {"DEBUG": 10, "INFO": 20, "WARNING": 30, "ERROR": 40, "CRITICAL": 50}
MOST_FILES: Final = 3000
_MOST_COUNTED: Final = 10 * MOST_FILES
"""Logs that are counted: a script can make any number of files where they are."""
_MOST_BYTES: Final = 16 << 20
_MOST_LINES: Final = 200_000
"""Lines that are looked at for one page: a block of line breaks alone has as many as bytes."""
_LEAST_BLOCK: Final = 4 << 10
_MOST_BLOCK: Final = 64 << 10
_LOOKS_BACK: Final = (4 << 10, 1 << 20)
_SHOWN: Final = 1000
_LIST: Final = "merged-logs"
_FAR_MS: Final = 1 << 52

Source = Literal["stdout", "stderr", "logger", "worker", "leader"]
_FOLDERS: Final[dict[str, Source]] = {
    "sys/node/": "worker", "user/entry_script_log/": "logger", "user/stderr/": "stderr", "user/stdout/": "stdout",
}  # fmt: skip
_ENDINGS: Final[dict[Source, str]] = {
    "worker": ".txt", "logger": ".log.txt", "stderr": ".stderr.txt", "stdout": ".stdout.txt",
}  # fmt: skip
_OF_LEADERS: Final = "sys/master_role."
_WITHOUT_LEVEL: Final[dict[Source, str]] = {"stdout": "INFO", "stderr": "WARNING"}


@dataclass(frozen=True, kw_only=True)
class Merge:
    yours: bool
    """Only what the script has printed and logged."""
    level: str = ""
    """The least level; what a script has printed counts as INFO, and on stderr as WARNING, if it names none."""
    worker: str = ""
    """A node, or `node/process`; empty: all."""
    mini_batch: int | None = None
    newest: bool = False
    """Pages go from the end on backwards; the lines of a page are in the order of time all the same."""
    limit: int = 200


@dataclass(frozen=True, order=True)
class _Key:
    """The place of a line among all: by its time, then by its log."""

    at_ms: int
    path: str
    offset: int


@dataclass(frozen=True)
class _Log:
    path: str
    source: Source
    node: str
    process: str
    size: int


@dataclass(frozen=True)
class _Block:
    """The lines that were read of a log."""

    log: _Log
    lines: list[TimedLine]
    has_more: bool
    has_time: bool = True


def merged_lines(served: ServedFolder, merge: Merge, token: str) -> MergedLines:
    """A page of lines.

    Raises:
        InvalidInput: the token is not of this list.
    """
    logs = _logs(served, merge)
    merged = list(islice(logs, MOST_FILES))
    left_out = sum(1 for _ in islice(logs, _MOST_COUNTED - MOST_FILES))
    place = _place(token, newest=merge.newest)
    most = max(_LEAST_BLOCK, min(_MOST_BLOCK, _MOST_BYTES // max(1, len(merged))))
    most_lines = _MOST_LINES // max(1, len(merged))
    readers = (_Reader(served, log, merge.newest, most_lines) for log in merged)
    blocks = [block for reader in readers if (block := reader.block(place, most))]
    keyed = sorted(
        ((_Key(line.at_ms, block.log.path, line.offset), line, block) for block in blocks for line in block.lines),
        key=lambda each: each[0],
        reverse=merge.newest,
    )
    ends = [
        _Key(last.at_ms, block.log.path, last.offset)
        for block in blocks
        if block.has_more and block.lines
        for last in [block.lines[0 if merge.newest else -1]]
    ]
    horizon = (max(ends) if merge.newest else min(ends)) if ends else None
    items: list[MergedLine] = []
    following: tuple[_Key, TimedLine] | None = None
    for key, line, block in keyed:
        if _matches(line, block.log.source, merge):
            items.append(_shown(line, block))
        if key == horizon or len(items) == merge.limit:
            following = key, line
            break
    if merge.newest:
        items.reverse()
    return MergedLines(
        items=items,
        files=len(merged),
        files_left_out=left_out,
        next_page_token=_token(*following, newest=merge.newest) if following else None,
    )


def _token(key: _Key, line: TimedLine, *, newest: bool) -> str:
    return encode_token(_LIST, "b" if newest else "a", key.at_ms, line.offset if newest else line.end, key.path)


def _place(token: str, *, newest: bool) -> _Key:
    """The last line of the page before; its offset is where its log goes on."""
    if not token:
        return _Key(_FAR_MS, "\U0010ffff", 0) if newest else _Key(-1, "", 0)
    direction, at_ms, offset, path = decode_token(token, _LIST, 4)
    if direction != ("b" if newest else "a") or not all(
        text.isascii() and text.isdecimal() and len(text) <= 18 for text in (at_ms, offset)
    ):
        raise InvalidInput.at("/query/page_token", f"{token[:50]!r} is not a token of this list")
    return _Key(int(at_ms), path, int(offset))


def _logs(served: ServedFolder, merge: Merge) -> Iterator[_Log]:
    for folder, source in _FOLDERS.items():
        if merge.yours and source == "worker":
            continue
        for entry in served.files(folder):
            if not entry.path.startswith(folder):
                break
            parts = entry.path.removeprefix(folder).split("/")
            process = parts[-1].removesuffix(_ENDINGS[source])
            if not entry.bytes or len(parts) != 2 or process == parts[-1] or "." in process:
                continue
            if merge.worker in ("", parts[0], f"{parts[0]}/{process}"):
                yield _Log(entry.path, source, parts[0], process, entry.bytes)
    if not merge.yours and not merge.worker:
        for entry in served.files(_OF_LEADERS):
            if not entry.path.startswith(_OF_LEADERS):
                break
            yield _Log(entry.path, "leader", "", "", entry.bytes)


class _Reader:
    """Reads one block of a log, of so many lines at most."""

    def __init__(self, served: ServedFolder, log: _Log, newest: bool, most_lines: int) -> None:
        self._served = served
        self._log = log
        self._newest = newest
        self._most_lines = most_lines

    def block(self, place: _Key, most: int) -> _Block | None:
        """The lines after a place, or before it; None: the log is gone."""
        try:
            fd = self._served.open(self._log.path)
        except (NotFound, UnsafePath):
            return None
        try:
            if self._log.source in ("stdout", "stderr"):
                return self._printed(fd, place, most)
            return self._timed(fd, place, most)
        finally:
            os.close(fd)

    def _timed(self, fd: int, place: _Key, most: int) -> _Block:
        size = self._log.size
        at = self._own(place)
        if at is None:
            at = first_line(fd, size, lambda line: None if (ms := time_of(line)) is None else self._is_after(ms, place))
        text, begin, has_more = self._read(fd, at, most)
        for looked_back in _LOOKS_BACK:  # a line may continue one that is before the block
            ahead = os.pread(fd, min(begin, looked_back), max(0, begin - looked_back))
            text_begin = begin - len(ahead)
            joined = ahead + text
            whole = joined.rfind(b"\n", 0, len(ahead)) + 1
            before = last_timed(joined[:whole], text_begin)
            lines = lines_with_times(joined[whole:], text_begin + whole, before)
            if lines and lines[0].offset <= begin:
                break
        return _Block(self._log, self._with_mini_batches(lines), has_more)

    def _printed(self, fd: int, place: _Key, most: int) -> _Block:
        marks_fd, marks_size = self._marks()
        try:
            at, has_time = self._own(place), marks_size > 0
            began_ms = 0 if has_time else self._worker_began_ms()
            if at is None and not has_time:
                at = 0 if self._is_after(began_ms, place) else self._log.size
            elif at is None:
                later = marks_from(marks_fd, marks_size, lambda mark: self._is_after(mark.at_ms, place))
                reached = [mark for mark in later if self._is_after(mark.at_ms, place)]
                is_first = bool(reached) and reached[0] == later[0]
                at = 0 if is_first else reached[0].position if reached else self._log.size
            text, begin, has_more = self._read(fd, at, most)
            marks = marks_from(marks_fd, marks_size, lambda mark: mark.position > begin) if has_time else []
            lines = printed_lines(text, begin, marks or [TimeMark(began_ms, 0, None)])
            return _Block(self._log, lines, has_more, has_time)
        finally:
            if marks_fd >= 0:
                os.close(marks_fd)

    def _own(self, place: _Key) -> int | None:
        """Return where the log goes on from which the last line of the page before was; None: it was of another one."""
        return place.offset if place.path == self._log.path else None

    def _is_after(self, at_ms: int, place: _Key) -> bool:
        """Return whether a line of that time comes after the place, or was on a page after it if these go backwards."""
        return (at_ms, self._log.path) > (place.at_ms, place.path)

    def _read(self, fd: int, at: int, most: int) -> tuple[bytes, int, bool]:
        """Whole lines after a position or before it, where they begin, and whether there are more."""
        size = self._log.size
        if self._newest:
            begin = max(0, at - most)
            text = os.pread(fd, at - begin, begin)
            skipped = text.find(b"\n") + 1 if begin else 0
            skipped = 0 if skipped == len(text) else skipped  # one line is longer than all of it
            tail = last_of(text[skipped:], self._most_lines)
            begin += len(text) - len(tail)
            return tail, begin, begin > 0
        text = os.pread(fd, min(most, max(0, size - at)), at)
        if len(text) == most and b"\n" not in text:
            text = os.pread(fd, min(_LOOKS_BACK[-1], size - at), at).partition(b"\n")[0] + b"\n"
        whole = text.rfind(b"\n") + 1
        text = first_of(text[:whole] if whole and at + len(text) < size else text, self._most_lines)
        return text, at, at + len(text) < size

    def _marks(self) -> tuple[int, int]:
        """The marks of a stream: a descriptor, and their size; -1 and 0: there are none."""
        log = self._log
        path = f"sys/node/{log.node}/{log.process}.{log.source}.marks"
        try:
            fd = self._served.open(path)
        except (NotFound, UnsafePath):
            return -1, 0
        return fd, os.fstat(fd).st_size

    def _worker_began_ms(self) -> int:
        """The time of the first line of the worker's own log; 0: it has none."""
        head = self._served.head(f"sys/node/{self._log.node}/{self._log.process}.txt", _LEAST_BLOCK)
        return time_of(head.partition(b"\n")[0]) or 0

    def _with_mini_batches(self, lines: list[TimedLine]) -> list[TimedLine]:
        """Lines of the script's logger, with the mini-batches that the marks name."""
        if self._log.source != "logger" or not lines:
            return lines
        fd, size = self._marks()
        if fd < 0:
            return lines
        try:
            marks = marks_from(fd, size, lambda mark: mark.position > lines[0].offset)
        finally:
            os.close(fd)
        filled, index = [], 0
        for line in lines:
            while index + 1 < len(marks) and marks[index + 1].position <= line.offset:
                index += 1
            mini_batch = marks[index].mini_batch if marks and marks[index].position <= line.offset else None
            filled.append(replace(line, mini_batch=mini_batch))
        return filled


def _matches(line: TimedLine, source: Source, merge: Merge) -> bool:
    if merge.mini_batch is not None and line.mini_batch != merge.mini_batch:
        return False
    level = LEVELS.get(line.level or _WITHOUT_LEVEL.get(source, "INFO"), 20)
    return level >= LEVELS.get(merge.level, 0)


def _shown(line: TimedLine, block: _Block) -> MergedLine:
    text = line.text.decode(errors="replace")
    return MergedLine(
        at=rfc3339(line.at_ms / 1000),
        has_time=block.has_time,
        level=line.level,
        node=block.log.node,
        process=block.log.process,
        mini_batch=line.mini_batch,
        source=block.log.source,
        path=block.log.path,
        offset=line.offset,
        text=visible(text[:_SHOWN].rstrip("\r"), lines=False),
        is_cut=len(text) > _SHOWN or line.is_cut,
    )
