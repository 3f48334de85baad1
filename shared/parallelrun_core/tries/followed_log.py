"""A term log, read on from where the last look at it ended."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from parallelrun_core.folder.damage import FRAME, Damage
from parallelrun_core.folder.record_log import RecordReader
from parallelrun_core.folder.term_log import Span, file_of, spans
from parallelrun_core.service.telemetry import logger

log = logger()

_MOST_TOLD: Final = 20


class WasCut(Exception):
    """Raised when what was read of a log doesn't count: its leader was paused, and the next one hasn't accepted all of
    it."""


class FollowedLog:
    """A log of a job, of which each reading returns what is new. Damage is passed over, and named in the log."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self._name = name
        self._read: dict[int, int] = {}
        """The byte up to which the file of each term was read."""
        self._told = set[str]()

    @property
    def positions(self) -> dict[int, int]:
        """The number of bytes of each term's file that were read."""
        return dict(self._read)

    @positions.setter
    def positions(self, positions: dict[int, int]) -> None:
        self._read = dict(positions)

    def new(self) -> Iterator[tuple[int, int, bytes]]:
        """`(term, offset, payload)` of each record that was not yet returned. It may be left at any time.

        Raises:
            WasCut: read everything again, with another of these.
            CorruptLog, NewerSchema: it can't be read.
        """
        current = spans(self._folder, self._name, on_damage=_pass_over)
        ends = {span.term: span.end for span in current}
        if any(term not in ends or at > (ends[term] or at) for term, at in self._read.items()):
            raise WasCut
        for span in current:
            try:
                yield from self._records(span)
            except OSError as error:  # those of other terms can be shown
                self._tell(f"{file_of(self._folder, self._name, span.term).name}: {error.strerror}")

    def _records(self, span: Span) -> Iterator[tuple[int, int, bytes]]:
        start = self._read.get(span.term, span.start)
        if span.end is not None and start >= span.end:
            return
        path = file_of(self._folder, self._name, span.term)
        reader = RecordReader(path, start=start, end=span.end, on_damage=lambda damage: self._tell(str(damage)))
        try:
            while (payload := reader.read()) is not None:
                self._read[span.term] = reader.at
                yield span.term, reader.at - FRAME.size - len(payload), payload
            if span.end is not None:
                self._read[span.term] = reader.at  # what is missing at its end is looked for once
        finally:
            reader.close()

    def _tell(self, event: str) -> None:
        """Name it in the log of the server, once."""
        if event not in self._told and len(self._told) < _MOST_TOLD:
            self._told.add(event)
            log.warning("tries_unreadable", folder=self._folder.name, what=event)

    def left_bytes(self) -> tuple[int, int]:
        """Return how many bytes are not read yet, and how many there are."""
        unread = total = 0
        for span in spans(self._folder, self._name, on_damage=_pass_over):
            try:
                end = span.end or file_of(self._folder, self._name, span.term).stat().st_size
            except FileNotFoundError:
                continue
            total += end - span.start
            unread += max(0, end - self._read.get(span.term, span.start))
        return unread, total


def read_record(folder: Path, name: str, term: int, offset: int) -> bytes | None:
    """The record whose frame begins there; None: it can't be read any more."""
    reader = RecordReader(file_of(folder, name, term), start=offset)
    try:
        return reader.read()
    finally:
        reader.close()


def _pass_over(_: Damage) -> None:
    """Ignore damage that a log has: who follows it reads on behind it."""
