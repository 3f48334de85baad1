"""The manifest: the items of each mini-batch, written once by the leader, never changed.

A term log (see `term_log`) of full messages; a mini-batch's id is its index. The last record closes it
with a count and a hash, after which the job's total is known and no id can be added.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from parallelrun_core.errors import CorruptLog
from parallelrun_core.folder.damage import FRAME
from parallelrun_core.folder.record_log import RecordReader, read_records
from parallelrun_core.folder.term_log import check_whole, file_of, open_term, read_term_log, spans
from parallelrun_core.wire import message

NAME = "manifest"
_CLOSING_MARK = b"\xc1closed"  # 0xc1 never begins a MessagePack value, so no message looks like this
_MAX_CLOSING_BYTES = 1024
_ENDLESS = 1 << 62


class Closing(msgspec.Struct, frozen=True, kw_only=True):
    """The last record: the totals of the whole manifest."""

    mini_batches: int
    items: int
    sha256: str
    order: str
    """`sorted` when every folder was listed by name, `listing` when one was too large for that."""


class ManifestEntry(NamedTuple):
    """A mini-batch, and its record in the manifest."""

    mini_batch: int
    term: int
    offset: int
    raw: bytes


class ManifestWriter:
    """Adds mini-batches after those of earlier terms.

    Raises:
        FileExistsError: this term has a manifest already.
    """

    def __init__(self, folder: Path, term: int) -> None:
        self.mini_batches = 0
        self.items = 0
        self._hash = hashlib.sha256()
        self.term = term
        # Our own file first: its header ends those of earlier leaders, which may still be writing.
        self._log = open_term(folder, NAME, term)
        for entry in read_manifest(folder):
            self._hash.update(entry.raw)
            self.mini_batches += 1
            self.items += message.decode(entry.raw).items

    def add(self, raw: bytes, items: int) -> int:
        """Append one full message; returns its mini-batch id."""
        self.extend([raw], items)
        return self.mini_batches - 1

    def extend(self, raws: list[bytes], items: int) -> None:
        """Append full messages, which have this number of items together."""
        self._log.extend(raws)
        self._hash.update(b"".join(raws))
        self.mini_batches += len(raws)
        self.items += items

    def sync(self) -> None:
        self._log.sync()

    def close(self, *, order: str) -> Closing:
        """Write the closing record; durable when this returns."""
        closing = Closing(mini_batches=self.mini_batches, items=self.items, sha256=self._hash.hexdigest(), order=order)
        self._log.append(_CLOSING_MARK + msgspec.json.encode(closing))
        self._log.sync()
        self._log.close()
        return closing

    def stop(self) -> None:
        """Stop before the end: another term may write the rest."""
        self._log.close()


def read_manifest(folder: Path) -> Iterator[ManifestEntry]:
    """Yield the mini-batches in order, as far as they are written."""
    for mini_batch, (term, offset, raw) in enumerate(read_term_log(folder, NAME)):
        if not raw.startswith(_CLOSING_MARK):
            yield ManifestEntry(mini_batch, term, offset, raw)


def read_closing(folder: Path) -> Closing | None:
    """The closing record, or None while the manifest still grows. Reads the whole manifest.

    Raises:
        CorruptLog: it is damaged.
    """
    return read_length(folder)[1]


def read_length(folder: Path) -> tuple[int, Closing | None]:
    """Return how many mini-batches can be read, and what `read_closing` returns."""
    last, records = b"", 0
    for _, _, raw in read_term_log(folder, NAME):
        last = raw
        records += 1
    closing = _closing_of(last)
    return records - (closing is not None), closing


def last_closing(folder: Path) -> Closing | None:
    """The closing record, read from the last bytes only; for callers that need not know that all before it is whole.

    After a power cut the end of a file may be there without its middle. So a leader that takes over must read it all.
    """
    for span in reversed(spans(folder, NAME)):
        path = file_of(folder, NAME, span.term)
        end = min(span.end or _ENDLESS, path.stat().st_size)
        begin = max(span.start, end - _MAX_CLOSING_BYTES)
        with path.open("rb") as file:
            file.seek(begin)
            at = file.read(max(0, end - begin)).rfind(_CLOSING_MARK)
        if at >= FRAME.size:
            return _closing_of(next(read_records(path, start=begin + at - FRAME.size, end=end), (0, b""))[1])
        if end > span.start:
            return None  # what comes last is a mini-batch
    return None


def _closing_of(raw: bytes) -> Closing | None:
    return msgspec.json.decode(raw[len(_CLOSING_MARK) :], type=Closing) if raw.startswith(_CLOSING_MARK) else None


def resolve(folder: Path, entry: message.Message) -> message.Message:
    """The full message: the given one, or the one in the manifest that it refers to.

    Raises:
        CorruptLog: it isn't there, or damaged.
    """
    if entry.kind != message.REFERENCE:
        return entry
    reference = message.reference_of(entry)
    path = file_of(folder, NAME, reference.term)
    _, raw = next(read_records(path, start=reference.offset), (0, b""))
    if not raw:
        raise CorruptLog(f"{path} can't be read at byte {reference.offset:,}")
    return message.decode(raw)


class ManifestCursor:
    """Reads a growing manifest from one mini-batch to the next, without holding more than a few."""

    def __init__(self, folder: Path, *, first: int = 0) -> None:
        self._folder = folder
        self._next = 0
        self._spans = spans(folder, NAME)
        self._reader = self._open() if self._spans else None
        while self._next < first and self.read() is not None:
            pass

    def _open(self) -> RecordReader:
        span = self._spans[0]
        return RecordReader(file_of(self._folder, NAME, span.term), start=span.start, end=span.end)

    def read(self) -> ManifestEntry | None:
        """The next mini-batch, or None when the writer has not flushed one yet.

        Raises:
            CorruptLog: not all that was accepted is there.
        """
        while self._reader is not None:
            offset = self._reader.at
            raw = self._reader.read()
            if raw is not None and not raw.startswith(_CLOSING_MARK):
                self._next += 1
                return ManifestEntry(self._next - 1, self._spans[0].term, offset, raw)
            if raw is not None or len(self._spans) == 1:
                return None
            check_whole(self._folder, NAME, self._spans[0], offset)
            self._reader.close()
            self._spans.pop(0)
            self._reader = self._open()
        return None

    def read_whole(self) -> ManifestEntry:
        """The next mini-batch, which has been written.

        Raises:
            CorruptLog: it can't be read.
        """
        entry = self.read()
        if entry is None:
            path = file_of(self._folder, NAME, self._spans[0].term) if self._spans else self._folder / NAME
            at = self._reader.at if self._reader is not None else 0
            raise CorruptLog(f"{path} can't be read at byte {at:,}: mini-batch {self._next} is missing there")
        return entry

    def close(self) -> None:
        if self._reader is not None:
            self._reader.close()
