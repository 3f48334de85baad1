"""An append-only file of records that a crash can only shorten, never garble.

A file is a run of frames: 4 bytes length of the payload, 4 bytes crc32 of that length and the payload (both
little-endian), the payload. A reader stops at the first frame that is short or whose crc is wrong. With no whole frame
after it, that is where a writer died, and nothing there was ever acknowledged. With whole frames after it, the disk has
damaged what was: see `damage.py`. Manifest, decision log and journals are all such files; one file has one writer for
its whole life.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from parallelrun_core.durable_files import sync_folder
from parallelrun_core.folder.damage import FRAME, Damage, frame_crc, next_whole_frame
from parallelrun_core.layout import PRIVATE_FILE

OnDamage = Callable[[Damage], object]
_READ_AHEAD = 1 << 18


class RecordWriter:
    """Appends frames to a file that it creates and owns. Nothing is durable before `sync()`.

    Raises:
        FileExistsError: the file exists: another leader has this term.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = open(path, "xb", buffering=1 << 16, opener=_private)  # noqa: SIM115 - it lives as long as the writer
        self.size = 0
        sync_folder(path.parent)

    def append(self, payload: bytes) -> int:
        """Append one record; returns the offset of its frame."""
        at = self.size
        frame = _framed(payload)
        self._file.write(frame)
        self.size = at + len(frame)
        return at

    def extend(self, payloads: Iterable[bytes]) -> None:
        """Append a record for each of these."""
        frames = b"".join([_framed(payload) for payload in payloads])
        self._file.write(frames)
        self.size += len(frames)

    def flush(self) -> None:
        """Hand all appended records to the operating system, so that readers see them."""
        self._file.flush()

    def sync(self) -> None:
        """Return once all appended records would survive a power cut."""
        self._file.flush()
        os.fdatasync(self._file.fileno())

    def close(self) -> None:
        self._file.close()


def _private(name: str, flags: int) -> int:
    return os.open(name, flags, PRIVATE_FILE)


class RecordReader:
    """Reads the frames of a file that may still grow, each once, with little read ahead.

    A missing file has no records. `at` is the offset of the frame that `read()` looks for next.

    Args:
        on_damage: told of each damaged range, which is passed over; without it, reading ends there.
    """

    def __init__(
        self, path: Path, *, start: int = 0, end: int | None = None, on_damage: OnDamage | None = None
    ) -> None:
        self.at = start
        self._path = path
        self._on_damage = on_damage
        self._end = end
        self._buffer = b""
        self._buffer_at = start
        try:
            self._fd = os.open(path, os.O_RDONLY)
        except FileNotFoundError:
            self._fd = -1

    def read(self) -> bytes | None:
        """The next record, or None when no further whole one is there (yet)."""
        if self._end is not None and self.at >= self._end:
            return self._stopped()
        begin = self.at - self._buffer_at + FRAME.size
        if len(self._buffer) < begin and not self._fill(FRAME.size):
            return self._stopped()
        begin = self.at - self._buffer_at + FRAME.size
        length, crc = FRAME.unpack_from(self._buffer, begin - FRAME.size)
        if len(self._buffer) < begin + length:
            if not self._fill(FRAME.size + length):
                return self._stopped()
            begin = FRAME.size
        payload = self._buffer[begin : begin + length]
        if frame_crc(payload) != crc:
            self._buffer = b""  # it may have been half-written: read the file again next time
            return self._stopped()
        self.at += FRAME.size + length
        return payload

    def _stopped(self) -> bytes | None:
        """No whole record is next: what comes after damage, if that is what it is."""
        return self.read() if self._on_damage is not None and self._pass_over(self._on_damage) else None

    def _pass_over(self, on_damage: OnDamage) -> bool:
        """Continue after a damaged range; whether there is more."""
        size = os.fstat(self._fd).st_size if self._fd >= 0 else 0
        begin, end = self.at, size if self._end is None else self._end
        if begin >= end:
            return False
        following = next_whole_frame(self._fd, begin, min(size, end))
        if following == begin:  # it was being written when it was read
            self._buffer, self._buffer_at = b"", begin
            return True
        if following is None and self._end is None:
            return False  # that is where its writer died, or will write on
        self.at = end if following is None else following
        self._buffer, self._buffer_at = b"", self.at
        on_damage(Damage(self._path, begin, self.at))
        return following is not None

    def _fill(self, size: int) -> bool:
        """Make the buffer begin at `at`; whether it then holds the wanted number of bytes."""
        if self._fd < 0 or (size > _READ_AHEAD and self.at + size > os.fstat(self._fd).st_size):
            return False  # a length that was never written must not be believed
        self._buffer = os.pread(self._fd, max(size, _READ_AHEAD), self.at)
        self._buffer_at = self.at
        return len(self._buffer) >= size

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def _framed(payload: bytes) -> bytes:
    return FRAME.pack(len(payload), frame_crc(payload)) + payload


def read_records(
    path: Path, *, start: int = 0, end: int | None = None, on_damage: OnDamage | None = None
) -> Iterator[tuple[int, bytes]]:
    """Yield `(offset of the next frame, payload)` for each whole record in `[start, end)` of a file.

    Args:
        on_damage: see `RecordReader`.
    """
    reader = RecordReader(path, start=start, end=end, on_damage=on_damage)
    try:
        while (payload := reader.read()) is not None:
            yield reader.at, payload
    finally:
        reader.close()
