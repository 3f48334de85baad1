"""The files of a listing that was broken off, in a few bytes each, for the leader that continues it.

Twenty million names as Python objects are gigabytes. A digest of each is enough to recognize it: two of its twelve
bytes say in which bucket the other ten are. The chance that any two of twenty million files have the same digest is
2 in 10^15. (Comparing only the last name of each folder would take even less, but then a folder would have to be listed
in the same order twice, which no file system promises.)
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

_BUCKETS = 1 << 16
_BYTES_EACH = 10


class SeenFiles:
    """Files by folder and name, each as often as it was added.

    Args:
        buckets: into how many parts to divide them; a few hundred files in each are searched in a microsecond.
    """

    def __init__(self, buckets: int = _BUCKETS) -> None:
        self._count = buckets
        self._buckets: dict[int, bytearray] = {}

    def __bool__(self) -> bool:
        return bool(self._buckets)

    def add(self, folder: bytes, names: Iterable[bytes]) -> None:
        start = self._start(folder)
        for name in names:
            number, rest = self._digest(start, name)
            self._buckets.setdefault(number, bytearray()).extend(rest)

    def take(self, folder: bytes, names: list[bytes]) -> list[bytes]:
        """Remove these, each once; returns those that were not there."""
        start = self._start(folder)
        return [name for name in names if not self._take(*self._digest(start, name))]

    def _take(self, number: int, rest: bytes) -> bool:
        bucket = self._buckets.get(number)
        at = bucket.find(rest) if bucket else -1
        while bucket and at >= 0 and at % _BYTES_EACH:  # across the border of two
            at = bucket.find(rest, at + 1)
        if not bucket or at < 0:
            return False
        bucket[at : at + _BYTES_EACH] = bucket[-_BYTES_EACH:]
        del bucket[-_BYTES_EACH:]
        return True

    @staticmethod
    def _start(folder: bytes) -> hashlib.blake2b:
        return hashlib.blake2b(folder + b"\0", digest_size=2 + _BYTES_EACH)

    def _digest(self, start: hashlib.blake2b, name: bytes) -> tuple[int, bytes]:
        both = start.copy()
        both.update(name)
        digest = both.digest()
        return int.from_bytes(digest[:2], "big") % self._count, digest[2:]
