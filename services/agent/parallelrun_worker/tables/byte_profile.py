"""The kinds of bytes in a text, found in one pass that looks at each block while it is in a processor's cache.

Search by search, that takes twice as long: a tenth of what delimited text takes to become a DataFrame.
"""

from typing import NamedTuple

_BLOCK = 1 << 18
_FIRST_BEYOND_ASCII = 128


class ByteProfile(NamedTuple):
    """The profile of the bytes of a text, by which it is read with the fastest parser that reads it right."""

    least: int
    """The least of them; 255: there are none."""
    greatest: int
    has_returns: bool
    has_escapes: bool
    has_backslashes: bool

    @property
    def is_ascii(self) -> bool:
        """Return whether all are ASCII."""
        return self.greatest < _FIRST_BEYOND_ASCII


def byte_profile_of(data: bytes) -> ByteProfile:
    """Return the profile of a text."""
    import numpy as np

    text = np.frombuffer(data, dtype=np.uint8)
    least, greatest = 255, 0
    has_returns = has_escapes = has_backslashes = False
    for start in range(0, len(data), _BLOCK):
        end = start + _BLOCK
        block = text[start:end]
        least, greatest = min(least, int(block.min())), max(greatest, int(block.max()))
        has_returns = has_returns or data.find(b"\r", start, end) >= 0
        has_escapes = has_escapes or data.find(b"\x1b", start, end) >= 0
        has_backslashes = has_backslashes or data.find(b"\\", start, end) >= 0
    return ByteProfile(least, greatest, has_returns, has_escapes, has_backslashes)
