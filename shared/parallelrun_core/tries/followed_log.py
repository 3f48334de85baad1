"""A log of a job that is read while leaders write it, each time from where the last reading ended."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from parallelrun_core.folder.damage import FRAME, Damage
from parallelrun_core.folder.record_log import RecordReader
from parallelrun_core.folder.term_log import Span, file_of, spans
from parallelrun_core.service.telemetry import logger

log = logger()

_MOST_WARNINGS: Final = 20
"""Warnings of one log, however much of it is damaged."""


class WasCut(Exception):
    """Part of what was read of a log doesn't count: its leader was paused, and the next one has not accepted that."""


class FollowedLog:
    """A term log of a job, of which each reading returns what is new. Damage is passed over, with a warning."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self._name = name
        self.positions: dict[int, int] = {}
        """The byte up to which the file of each term was read."""
        self._warnings = set[str]()

    def new_records(self) -> Iterator[tuple[int, int, bytes]]:
        """Yield `(term, offset, payload)` of each record that was not yet returned; those not taken come again.

        Raises:
            WasCut: read everything again, with a new `FollowedLog`.
            CorruptLog, NewerSchema: it can't be read.
        """
        current = spans(self._folder, self._name, on_damage=_pass_over)
        ends = {span.term: math.inf if span.end is None else span.end for span in current}
        if any(at > ends.get(term, -1) for term, at in self.positions.items()):
            raise WasCut
        for span in current:
            try:
                yield from self._records(span)
            except OSError as error:  # those of other terms can be shown
                self._warn_once(f"{file_of(self._folder, self._name, span.term).name}: {error.strerror}")

    def left_bytes(self) -> tuple[int, int]:
        """Return how many bytes are not read yet, and how many there are."""
        unread = total = 0
        for span in spans(self._folder, self._name, on_damage=_pass_over):
            file = file_of(self._folder, self._name, span.term)
            try:
                end = file.stat().st_size if span.end is None else span.end
            except FileNotFoundError:
                continue
            total += max(0, end - span.start)
            unread += max(0, end - self.positions.get(span.term, span.start))
        return unread, total

    def _records(self, span: Span) -> Iterator[tuple[int, int, bytes]]:
        start = self.positions.get(span.term, span.start)
        if span.end is not None and start >= span.end:
            return
        path = file_of(self._folder, self._name, span.term)
        reader = RecordReader(path, start=start, end=span.end, on_damage=lambda damage: self._warn_once(str(damage)))
        try:
            while (payload := reader.read()) is not None:
                self.positions[span.term] = reader.at
                yield span.term, reader.at - FRAME.size - len(payload), payload
            if span.end is not None:
                self.positions[span.term] = reader.at  # what is missing at its end is looked for once
        finally:
            reader.close()

    def _warn_once(self, problem: str) -> None:
        if problem not in self._warnings and len(self._warnings) < _MOST_WARNINGS:
            self._warnings.add(problem)
            log.warning("tries_unreadable", folder=self._folder.name, what=problem)


def read_record(folder: Path, name: str, term: int, offset: int) -> bytes | None:
    """The record that begins at this byte of a term's file; None: it can't be read any more."""
    reader = RecordReader(file_of(folder, name, term), start=offset)
    try:
        return reader.read()
    finally:
        reader.close()


def _pass_over(_: Damage) -> None:
    """Read on behind damage; `new_records` warns of it."""
