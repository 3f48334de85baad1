"""How far ahead of the decisions mini-batches are published."""

from __future__ import annotations

import pytest

from parallelrun_master.policy.window import MAX_OUTSTANDING, MAX_OUTSTANDING_BYTES, Window


@pytest.mark.parametrize("size", [1, 60_000])
def test_the_window_is_bounded_in_number_and_in_bytes(size: int) -> None:
    window = Window()
    while count := window.room(10**9):
        window.published([bytes(size)] * count, next_id=window.next_id + count, outstanding=window.outstanding + count)
    assert window.outstanding <= MAX_OUTSTANDING
    # The first call goes out before the size of a message is known.
    assert window.outstanding * size <= MAX_OUTSTANDING_BYTES + 1000 * size
    window.refresh(window.outstanding, window.outstanding)  # what agents hold makes room: there may be many agents
    assert window.room(window.next_id + 7) == 7
    window.leased = 0
    window.decided(window.outstanding)
    assert window.room(window.next_id + 7) == 7


def test_a_window_that_redis_sees_elsewhere_is_to_be_rewound() -> None:
    window = Window()
    assert not window.published([b"m"], next_id=5, outstanding=3)
    window.rewind(5, 3)
    assert (window.next_id, window.outstanding) == (5, 3)
