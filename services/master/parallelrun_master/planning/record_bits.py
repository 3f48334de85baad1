"""Sets of positions in a block of text, a bit for each character, 64 to a word.

Counting and combining them costs a small part of what lists of positions do, and a mini-batch needs only one position
in many thousands.
"""

from __future__ import annotations

from copy import copy
from typing import Final

import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.uint64]

_WORD: Final = 64
_ONES: Final = np.unpackbits(np.arange(1 << 16, dtype=np.uint16).view(np.uint8)).reshape(-1, 16).sum(1, dtype=np.uint8)
"""How many bits are set in each number of 16 bits."""


def bits_of(mask: npt.NDArray[np.bool_]) -> Words:
    """The positions where a mask is true; those after its end are not."""
    packed = np.packbits(mask, bitorder="little")
    words = np.zeros(-(-len(packed) // 8), dtype="<u8")
    words.view(np.uint8)[: len(packed)] = packed
    return words


def following(words: Words, *, first: bool) -> Words:
    """The positions after these, with or without the `first` one of all."""
    shifted = words << np.uint64(1)
    shifted[1:] |= words[:-1] >> np.uint64(63)
    shifted[0] |= np.uint64(first)
    return shifted


def preceding(words: Words) -> Words:
    """The positions before these."""
    shifted = words >> np.uint64(1)
    shifted[:-1] |= words[1:] << np.uint64(63)
    return shifted


def odd_from(words: Words) -> Words:
    """The positions up to which, inclusive, there is an odd number of these."""
    parities = words.copy()
    for shift in (1, 2, 4, 8, 16, 32):
        parities ^= parities << np.uint64(shift)
    odd = np.bitwise_xor.accumulate(parities >> np.uint64(63))
    parities[1:] ^= np.negative(odd[:-1])  # all bits, where there is an odd number in the words before
    return parities


class Offsets:
    """Some positions of a text, in order, as offsets in a file.

    Args:
        words: a bit for each character of the text, whose first one is at `base` in the file.
        width: bytes of a character.
        has_sound_quotes: no quote of the text may have been meant to end a field elsewhere.
    """

    def __init__(self, words: Words, base: int, width: int = 1, *, has_sound_quotes: bool = False) -> None:
        self.has_sound_quotes = has_sound_quotes
        self._words = words
        self._base = base
        self._width = width
        of_quarters = _ONES[words.view(np.uint16)].view(np.uint32)
        ones = (of_quarters * np.uint32(0x01010101)) >> np.uint32(24)  # the four numbers of a word, added up
        self._up_to: npt.NDArray[np.int64] = np.cumsum(ones, dtype=np.int64)
        """How many offsets there are up to the end of each word."""
        self._ranks = range(int(self._up_to[-1]))

    def part(self, first: int, end: int) -> Offsets:
        """Return the set bits with a rank from `first` up to but not including `end`."""
        part = copy(self)
        part._ranks = self._ranks[first:end]
        return part

    def __len__(self) -> int:
        return len(self._ranks)

    def __getitem__(self, rank: int) -> int:
        """The offset with this rank, counted from 0.

        Raises:
            IndexError: there is none.
        """
        rank = self._ranks[rank]
        word = int(np.searchsorted(self._up_to, rank, side="right"))
        bits = int(self._words[word])
        for _ in range(rank - self._up_to_word(word)):
            bits &= bits - 1
        return self._base + (word * _WORD + (bits & -bits).bit_length() - 1) * self._width

    def before(self, offset: int) -> int:
        """Return how many of these are before this offset."""
        word, bit = divmod(max(0, -((self._base - offset) // self._width)), _WORD)
        if word >= len(self._words):
            return len(self)
        rank = self._up_to_word(word) + (int(self._words[word]) & ((1 << bit) - 1)).bit_count()
        return min(max(rank - self._ranks.start, 0), len(self))

    def _up_to_word(self, word: int) -> int:
        return int(self._up_to[word - 1]) if word else 0
