"""Sets of positions say what lists of positions would."""

from __future__ import annotations

from itertools import accumulate

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from parallelrun_master.planning.record_bits import Offsets, Words, bits_of, following, odd_from, preceding

masks = st.lists(st.booleans(), min_size=1, max_size=200).map(lambda found: np.array(found, dtype=bool))


def listed(words: Words, length: int) -> list[bool]:
    return [bool(bit) for bit in np.unpackbits(words.view(np.uint8), bitorder="little")[:length]]


@given(mask=masks, first=st.booleans())
def test_neighbours_and_parity(mask: np.ndarray, first: bool) -> None:
    words, length = bits_of(mask), len(mask)
    assert listed(words, length) == mask.tolist()
    assert listed(following(words, first=first), length) == [first, *mask.tolist()[:-1]]
    assert listed(preceding(words), length) == [*mask.tolist()[1:], False]
    assert listed(odd_from(words), length) == [count % 2 == 1 for count in accumulate(mask.tolist())]


@given(
    mask=masks,
    base=st.integers(0, 9),
    width=st.sampled_from([1, 2]),
    cut=st.tuples(st.integers(0, 9), st.integers(0, 250)),
)
def test_offsets_are_counted_and_found(mask: np.ndarray, base: int, width: int, cut: tuple[int, int]) -> None:
    expected = [base + int(at) * width for at in np.flatnonzero(mask)]
    offsets = Offsets(bits_of(mask), base, width)
    assert [offsets[rank] for rank in range(len(offsets))] == expected
    part = offsets.part(*cut)
    assert [part[rank] for rank in range(len(part))] == expected[slice(*cut)]
    for offset in range(base + 2 * len(mask) + 3):
        assert part.before(offset) == sum(each < offset for each in expected[slice(*cut)])
