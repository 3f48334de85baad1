"""A record log that is fenced by term: `<name>.1`, `<name>.2`, …, one file for each term of a leader.

Two processes may believe for a moment that they lead a job: one was paused, and another took over.
So a leader never appends to a file that it did not create. It creates `<name>.<term>` exclusively and
writes into that file's header how much of each earlier file it accepts. Readers follow the newest
header, so whatever a paused leader writes after that moment is ignored.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from parallelrun_core.errors import CorruptLog
from parallelrun_core.folder.files import sync_file
from parallelrun_core.folder.record_log import RecordWriter, read_records
from parallelrun_core.folder.schema import SCHEMA, decode


class Header(msgspec.Struct, frozen=True, kw_only=True):
    """The first record of each file of a term log."""

    schema: int = SCHEMA
    term: int
    accepted: dict[str, int]
    """How many bytes of each earlier term's file count: term, as a string → length."""


class Span(msgspec.Struct, frozen=True):
    """The part of one term's file that counts; `end` is None in the file that still grows."""

    term: int
    start: int
    end: int | None


def file_of(folder: Path, name: str, term: int) -> Path:
    return folder / f"{name}.{term}"


def terms(folder: Path, name: str) -> list[int]:
    """The terms that have a file, ascending."""
    numbers = (path.name.rpartition(".")[2] for path in folder.glob(f"{name}.*"))
    return sorted(int(text) for text in numbers if text.isdecimal())


def accept(folder: Path, name: str) -> dict[str, int]:
    """How many bytes of each term's file can be read now, by term as a string; durable on return.

    Terms without a record are omitted: there may be many such leaders, and each header would name all the others.
    """
    accepted = {}
    for span in spans(folder, name):
        end = span.end
        if end is None:
            end = _readable(folder, name, span)
            # Its leader may have been killed before it synced this, and a power cut would take it back.
            sync_file(file_of(folder, name, span.term))
        if end > span.start:
            accepted[str(span.term)] = end
    return accepted


def open_term(folder: Path, name: str, term: int, *, accepted: dict[str, int] | None = None) -> RecordWriter:
    """Begin this leader's file.

    Args:
        accepted: how much of each earlier file counts; by default what `accept` returns now.

    Raises:
        FileExistsError: this term is taken.
    """
    accepted = accept(folder, name) if accepted is None else accepted
    writer = RecordWriter(file_of(folder, name, term))
    writer.append(msgspec.json.encode(Header(term=term, accepted=accepted)))
    writer.sync()
    return writer


def spans(folder: Path, name: str) -> list[Span]:
    """The part of each file that counts, oldest term first.

    Raises:
        CorruptLog: the header of a file can't be read.
        NewerSchema: a newer release has written it.
    """
    for term in reversed(terms(folder, name)):
        first = next(read_records(file_of(folder, name, term)), None)
        if first is None:
            continue  # its leader died before the header was durable, so it decided nothing
        start, payload = first
        header = decode(payload, Header, file_of(folder, name, term))
        earlier = [Span(int(t), _first_record(folder, name, int(t)), end) for t, end in header.accepted.items()]
        return [*sorted(earlier, key=lambda span: span.term), Span(term, start, None)]
    return []


def read_term_log(folder: Path, name: str) -> Iterator[tuple[int, int, bytes]]:
    """Yield `(term, offset of the record's frame, payload)` for every record that counts, in order.

    Raises:
        CorruptLog: not all that was accepted is there.
        NewerSchema: a newer release has written it.
    """
    for span in spans(folder, name):
        at = span.start
        for following, payload in read_records(file_of(folder, name, span.term), start=span.start, end=span.end):
            yield span.term, at, payload
            at = following
        check_whole(folder, name, span, at)


def check_whole(folder: Path, name: str, span: Span, at: int) -> None:
    """Make sure that a span which can be read up to here is all there.

    Raises:
        CorruptLog: it isn't: what comes in later terms would count as if it had never been.
    """
    if span.end is not None and at < span.end:
        path = file_of(folder, name, span.term)
        raise CorruptLog(f"{path} can only be read up to byte {at:,}, and {span.end:,} bytes of it were accepted")


def _first_record(folder: Path, name: str, term: int) -> int:
    return next(read_records(file_of(folder, name, term)), (0, b""))[0]


def _readable(folder: Path, name: str, span: Span) -> int:
    end = span.start
    for following, _ in read_records(file_of(folder, name, span.term), start=span.start):
        end = following
    return end
