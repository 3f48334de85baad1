"""Lines of logs with their times: found by time without reading what is before them.

The engine's logs, and those of `EntryScript().logger`, have the time in each line. Of what scripts print, the worker's
marks say when it was printed: `time|INFO|pid|thread|position|mini-batch`.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Final

_STEP: Final = 4 << 10
_LONGEST: Final = 1 << 20
_MARKS_BYTES: Final = 256 << 10
_TIMED: Final = re.compile(rb"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d),(\d{3})\|([A-Z]+)\|\d+\|\d+\|(.*)", re.DOTALL)
_LEVEL: Final = re.compile(rb"\b(DEBUG|INFO|WARNING|WARN|ERROR|CRITICAL|FATAL)\b")
_SAME_LEVEL: Final = {"WARN": "WARNING", "FATAL": "CRITICAL"}
_LEVEL_WITHIN: Final = 60
_OF_MINI_BATCH: Final = re.compile(rb"Mini-batch (\d{1,15})\b")


@dataclass(frozen=True)
class TimedLine:
    """A line, where it is, and when it was written."""

    at_ms: int
    offset: int
    end: int
    level: str | None
    mini_batch: int | None
    text: bytes


@dataclass(frozen=True)
class Mark:
    """From where on a stream was printed at a time, and for which mini-batch."""

    at_ms: int
    position: int
    mini_batch: int | None


def time_of(line: bytes) -> int | None:
    """The time of a line in milliseconds since the epoch; None: it continues the line before."""
    match = _TIMED.match(line)
    return _ms(match) if match else None


def first_line(fd: int, size: int, is_reached: Callable[[bytes], bool | None]) -> int:
    """The position of the first line for which a condition holds that holds for all lines after it; `size`: of none.

    Args:
        is_reached: None for a line of which nothing can be said, such as one that continues the line before.
    """
    low, high = 0, size
    while high - low > _STEP:
        middle = (low + high) // 2
        verdict, begin = next(
            (
                (verdict, begin)
                for begin, line in _lines_at(fd, middle, high)
                if (verdict := is_reached(line)) is not None
            ),
            (True, high),
        )
        if verdict:
            high = middle
        else:
            low = begin
    for begin, line in _lines_at(fd, low, size, is_begin=True):
        if is_reached(line):
            return begin
    return size


def _lines_at(fd: int, at: int, end: int, *, is_begin: bool = False) -> Iterator[tuple[int, bytes]]:
    """The lines that begin at a position or after it, with their positions; very long ones in pieces."""
    with open(fd, "rb", closefd=False) as file:
        file.seek(at)
        if at and not is_begin:
            file.readline()
        begin = file.tell()
        while begin < end and (line := file.readline(_LONGEST)):
            yield begin, line
            begin += len(line)


def lines_with_times(block: bytes, begin: int, before_ms: int | None) -> list[TimedLine]:
    """The lines of a block of a log that has the time in its lines.

    Args:
        before_ms: the time of lines that continue one before the block; None: they are left out.
    """
    lines: list[TimedLine] = []
    at_ms, level, mini_batch = before_ms, None, None
    for offset, end, line in _cut(block, begin):
        match = _TIMED.match(line)
        if match:
            at_ms, level = _ms(match), match[3].decode()
            subject = _OF_MINI_BATCH.match(match[4])
            mini_batch = int(subject[1]) if subject else None
        if at_ms is not None:
            lines.append(TimedLine(at_ms, offset, end, level, mini_batch, match[4] if match else line))
    return lines


def printed_lines(block: bytes, begin: int, marks: list[Mark]) -> list[TimedLine]:
    """The lines of a block of what was printed.

    Args:
        marks: at least one, by position.
    """
    positions, lines = [mark.position for mark in marks], []
    for offset, end, text in _cut(block, begin):
        mark = marks[max(0, bisect_right(positions, offset) - 1)]
        lines.append(TimedLine(mark.at_ms, offset, end, level_in(text), mark.mini_batch, text))
    return lines


def level_in(text: bytes) -> str | None:
    """The level that a line names near its beginning, as formats of logging do."""
    match = _LEVEL.search(text[:_LEVEL_WITHIN])
    name = match[1].decode() if match else None
    return _SAME_LEVEL.get(name, name) if name else None


def marks_from(fd: int, size: int, is_reached: Callable[[Mark], bool]) -> list[Mark]:
    """Marks in their order: from the one before the first for which a condition holds, some thousands of them."""
    at = first_line(fd, size, lambda line: is_reached(mark) if (mark := _mark(line)) else None)
    begin = max(0, at - _STEP)
    text = os.pread(fd, _MARKS_BYTES, begin)
    marks = [mark for _, _, line in _cut(text, begin) if (mark := _mark(line))]
    before = [mark for mark in marks if not is_reached(mark)]
    return marks[max(0, len(before) - 1) :]


def _mark(line: bytes) -> Mark | None:
    match = _TIMED.match(line)
    position, _, mini_batch = match[4].partition(b"|") if match else (b"", b"", b"")
    if match is None or not position.isdigit() or not mini_batch.strip().removeprefix(b"-").isdigit():
        return None
    number = int(mini_batch)
    return Mark(_ms(match), int(position), number if number >= 0 else None)


def _cut(block: bytes, begin: int) -> Iterator[tuple[int, int, bytes]]:
    """The lines of a block: where each begins, where the next one does, and its text."""
    at = 0
    while at < len(block):
        stop = block.find(b"\n", at)
        after = len(block) if stop < 0 else stop + 1
        yield begin + at, begin + after, block[at : after - 1 if stop >= 0 else after]
        at = after


def _ms(match: re.Match[bytes]) -> int:
    try:
        second = datetime.fromisoformat(f"{match[1].decode()}+00:00")
    except ValueError:  # such as month 13: somebody has written a line that looks like one
        return 0
    return int(second.timestamp()) * 1000 + int(match[2])
