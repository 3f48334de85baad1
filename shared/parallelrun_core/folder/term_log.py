"""A record log that is fenced by term: `<name>.1`, `<name>.2`, …, one file for each term of a leader.

Two processes may believe for a moment that they lead a job: one was paused, and another took over.
So a leader never appends to a file that it did not create. It creates `<name>.<term>` exclusively and
writes into that file's header how much of each earlier file it accepts. Readers follow the newest
header, so whatever a paused leader writes after that moment is ignored.

A disk may damage such a log (`damage.py`). Who can do without what was there passes `on_damage` and gets the rest, in
order; for all others, damage is an error.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

from parallelrun_core.documents.schema import RETRIED_ITEMS, SCHEMA, decode
from parallelrun_core.durable_files import sync_file
from parallelrun_core.errors import CorruptLog
from parallelrun_core.folder.damage import FRAME, Damage
from parallelrun_core.folder.record_log import OnDamage, RecordReader, RecordWriter, read_records


class Header(msgspec.Struct, frozen=True, kw_only=True):
    """The first record of each file of a term log."""

    schema: int = SCHEMA
    term: int
    accepted: dict[str, int]
    """Number of bytes of each earlier term's file count: term, as a string → length."""


class Span(msgspec.Struct, frozen=True):
    """The part of one term's file that counts; `end` is None in the file that still grows."""

    term: int
    start: int
    end: int | None


def file_of(folder: Path, name: str, term: int) -> Path:
    return folder / f"{name}.{term}"


def terms(folder: Path, name: str) -> list[int]:
    """The terms that have a file, ascending."""
    try:
        names = os.listdir(folder)  # noqa: PTH208 - no path for each
    except (FileNotFoundError, PermissionError):
        return []
    numbers = (each.rpartition(".")[2] for each in names if each.startswith(f"{name}."))
    return sorted(int(text) for text in numbers if text.isdecimal())


def accept(folder: Path, name: str, *, on_damage: OnDamage | None = None) -> dict[str, int]:
    """Return how many bytes of each term's file can be read now, by term as a string; durable on return.

    Terms without a record are omitted: there may be many such leaders, and each header would name all the others.

    Args:
        on_damage: see `spans`.
    """
    accepted = {}
    for span in spans(folder, name, on_damage=on_damage):
        end = span.end
        if end is None:
            end = _readable_end(folder, name, span)
            # Its leader may have been killed before it synced this, and a power cut would take it back.
            sync_file(file_of(folder, name, span.term))
        if end > span.start:
            accepted[str(span.term)] = end
    return accepted


def open_term(
    folder: Path, name: str, term: int, *, accepted: dict[str, int] | None = None, schema: int = SCHEMA
) -> RecordWriter:
    """Begin this leader's file.

    Args:
        accepted: how much of each earlier file counts; by default what `accept` returns now.
        schema: what a reader must know to read this file and those that it accepts.

    Raises:
        FileExistsError: this term is taken.
    """
    accepted = accept(folder, name) if accepted is None else accepted
    writer = RecordWriter(file_of(folder, name, term))
    writer.append(msgspec.json.encode(Header(schema=schema, term=term, accepted=accepted)))
    writer.sync()
    return writer


def latest_schema(folder: Path, name: str) -> int:
    """Return the schema of the newest header that can be read; 0 when there is none."""
    for term in reversed(terms(folder, name)):
        if (header := _header(folder, name, term)[1]) is not None:
            return header.schema
    return 0


def spans(folder: Path, name: str, *, on_damage: OnDamage | None = None) -> list[Span]:
    """The part of each file that counts, oldest term first.

    Args:
        on_damage: told of headers that are damaged. Such a file counts as far as it can be read; and so do the earlier
            ones, unless an earlier header says how much of them counts.

    Raises:
        CorruptLog: the header of a file can't be read.
        NewerSchema: a newer release has written it.
    """
    later: list[Span] = []
    for term in reversed(terms(folder, name)):
        start, header = _header(folder, name, term)
        if header is not None:
            earlier = [Span(int(t), _first_record(folder, name, int(t)), end) for t, end in header.accepted.items()]
            return [*sorted(earlier, key=lambda span: span.term), Span(term, start, None), *later]
        if start:
            _damaged(Damage(file_of(folder, name, term), 0, start), on_damage)
            later.insert(0, Span(term, start, None))
        # else its leader died before the header was durable, so it decided nothing
    return later


def _header(folder: Path, name: str, term: int) -> tuple[int, Header | None]:
    """Return where the records of a file begin, 0 when it has none, and its header, unless that is damaged."""
    path, damage = file_of(folder, name, term), list[Damage]()
    start, payload = next(read_records(path, on_damage=damage.append), (0, b""))
    if damage:
        return damage[0].end, None
    return start, decode(payload, Header, path, reads_up_to=RETRIED_ITEMS) if start else None


def _damaged(damage: Damage, on_damage: OnDamage | None) -> None:
    if on_damage is None:
        raise CorruptLog(f"{damage.path.parent / str(damage)}")
    on_damage(damage)


def read_term_log(folder: Path, name: str, *, on_damage: OnDamage | None = None) -> Iterator[tuple[int, int, bytes]]:
    """Yield `(term, offset of the record's frame, payload)` for every record that counts, in order.

    Args:
        on_damage: told of each damaged range, which is passed over.

    Raises:
        CorruptLog: something is damaged, and nobody wants to be told.
        NewerSchema: a newer release has written it.
    """
    for span in spans(folder, name, on_damage=on_damage):
        at = span.start
        path, head = file_of(folder, name, span.term), FRAME.size
        for at, payload in read_records(path, start=span.start, end=span.end, on_damage=on_damage):
            yield span.term, at - head - len(payload), payload
        if on_damage is None:
            check_whole(folder, name, span, at)


def check_whole(folder: Path, name: str, span: Span, at: int) -> None:
    """Make sure that a span which can be read up to here is all there.

    Raises:
        CorruptLog: it isn't: what comes later would count as if it had never been.
    """
    path, end = file_of(folder, name, span.term), span.end
    if end is not None and at < end:
        raise CorruptLog(f"{path} can only be read up to byte {at:,}, and {end:,} bytes of it were accepted")
    damage = list[Damage]()
    if end is None:  # what a paused leader adds meanwhile is no damage
        _readable_end(folder, name, Span(span.term, at, None), on_damage=damage.append)
    if damage:
        raise CorruptLog(f"{path} is damaged at byte {at:,}, and goes on after that")


def _first_record(folder: Path, name: str, term: int) -> int:
    return next(read_records(file_of(folder, name, term)), (0, b""))[0]


def _readable_end(folder: Path, name: str, span: Span, *, on_damage: OnDamage = lambda _: None) -> int:
    """Return where the last whole record of a span ends."""
    reader = RecordReader(file_of(folder, name, span.term), start=span.start, on_damage=on_damage)
    try:
        while reader.read() is not None:
            pass
        return reader.at
    finally:
        reader.close()
