"""Lines of logs with their times: found by time without reading what is before them.

Scripts write logs as they like, such as one line that never ends, or nothing but line breaks. So nothing here reads or
keeps more because of what is in a log: each look has a limit in bytes, and each line has one that is kept of it.

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
_PROBE: Final = 128 << 10
"""Bytes that are read at most at one place for a line of which something can be said."""
_SCAN: Final = 4 << 20
"""Bytes that are read at most for the first line that is searched, once its neighborhood is known."""
LINE_BYTES: Final = 4000
"""Bytes that are kept of a line."""
_MARKS_BYTES: Final = 256 << 10
_TIMED: Final = re.compile(rb"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d),(\d{3})\|([A-Z]+)\|\d+\|\d+\|(.*)", re.DOTALL)
_TIME: Final = re.compile(rb"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}\|", re.MULTILINE)
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
    is_cut: bool = False
    """The line is longer than its text."""


@dataclass(frozen=True)
class TimeMark:
    """A position from which on a stream was printed at a time, and for which mini-batch."""

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
    for begin, line in _lines_at(fd, low, size, is_begin=True, most=_SCAN):
        if is_reached(line):
            return begin
    return size


def _lines_at(fd: int, at: int, end: int, *, is_begin: bool = False, most: int = _PROBE) -> Iterator[tuple[int, bytes]]:
    """The lines with a time that begin at a position or after it, each with its position, as far as `most` bytes go."""
    begin, rest, step, is_line = at, b"", _STEP, is_begin or not at
    while (read := begin + len(rest) - at) < most and (block := os.pread(fd, min(step, most - read), at + read)):
        rest, step = rest + block, min(4 * step, most)
        if not is_line:
            skipped = rest.find(b"\n") + 1
            is_line, skipped = skipped > 0, skipped or len(rest)
            begin, rest = begin + skipped, rest[skipped:]
        whole = rest.rfind(b"\n") + 1
        for match in _TIME.finditer(rest, 0, whole):
            if begin + match.start() >= end:
                return
            yield begin + match.start(), rest[match.start() : rest.find(b"\n", match.start())]
        begin, rest = begin + whole, rest[whole:]
    if rest and is_line and begin < end:
        yield begin, rest


def first_of(text: bytes, most: int) -> bytes:
    """The first lines of a text, `most` of them."""
    at = 0
    for _ in range(most):
        at = text.find(b"\n", at) + 1
        if not at:
            return text
    return text[:at]


def last_of(text: bytes, most: int) -> bytes:
    """The last lines of a text, `most` of them."""
    at = len(text) - text.endswith(b"\n")
    for _ in range(most):
        at = text.rfind(b"\n", 0, at)
        if at < 0:
            return text
    return text[at + 1 :]


def last_timed(text: bytes, begin: int) -> TimedLine | None:
    """The last line of a text that has a time, if any."""
    at = max((match.start() for match in _TIME.finditer(text)), default=-1)
    lines = lines_with_times(text[at:].partition(b"\n")[0], begin + at, None) if at >= 0 else []
    return lines[0] if lines else None


def lines_with_times(block: bytes, begin: int, before: TimedLine | None) -> list[TimedLine]:
    """The lines of a block of a log that has the time in its lines.

    Args:
        before: the last line before the block that has a time, which its first lines may continue; None: these are
            left out.
    """
    lines: list[TimedLine] = []
    at_ms, level, mini_batch = (before.at_ms, before.level, before.mini_batch) if before else (None, None, None)
    for offset, end, line in _cut(block, begin):
        match = _TIMED.match(line)
        if match:
            at_ms, level = _ms(match), match[3].decode()
            subject = _OF_MINI_BATCH.match(match[4])
            mini_batch = int(subject[1]) if subject else None
        if at_ms is not None:
            text = match[4] if match else line
            lines.append(TimedLine(at_ms, offset, end, level, mini_batch, text[:LINE_BYTES], len(text) > LINE_BYTES))
    return lines


def printed_lines(block: bytes, begin: int, marks: list[TimeMark]) -> list[TimedLine]:
    """The lines of a block of what was printed.

    Args:
        marks: at least one, by position.
    """
    positions, lines = [mark.position for mark in marks], []
    for offset, end, text in _cut(block, begin):
        mark = marks[max(0, bisect_right(positions, offset) - 1)]
        is_cut = len(text) > LINE_BYTES
        lines.append(TimedLine(mark.at_ms, offset, end, level_in(text), mark.mini_batch, text[:LINE_BYTES], is_cut))
    return lines


def level_in(text: bytes) -> str | None:
    """The level that a line names near its beginning, as formats of logging do."""
    match = _LEVEL.search(text[:_LEVEL_WITHIN])
    name = match[1].decode() if match else None
    return _SAME_LEVEL.get(name, name) if name else None


def marks_from(fd: int, size: int, is_reached: Callable[[TimeMark], bool]) -> list[TimeMark]:
    """Marks in their order: from the one before the first for which a condition holds, some thousands of them."""
    at = first_line(fd, size, lambda line: is_reached(mark) if (mark := _mark(line)) else None)
    begin = max(0, at - _STEP)
    text = os.pread(fd, _MARKS_BYTES, begin)
    marks = [mark for _, _, line in _cut(text, begin) if (mark := _mark(line))]
    before = [mark for mark in marks if not is_reached(mark)]
    return marks[max(0, len(before) - 1) :]


def _mark(line: bytes) -> TimeMark | None:
    match = _TIMED.match(line)
    position, _, mini_batch = match[4].partition(b"|") if match else (b"", b"", b"")
    if match is None or not position.isdigit() or not mini_batch.strip().removeprefix(b"-").isdigit():
        return None
    number = int(mini_batch)
    return TimeMark(_ms(match), int(position), number if number >= 0 else None)


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
