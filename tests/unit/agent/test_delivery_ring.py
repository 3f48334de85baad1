"""The memory through which payloads reach a worker: what is there stays whole until the worker needs it no more."""

from __future__ import annotations

from collections import deque
from mmap import mmap

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from parallelrun_agent.workers.delivery_ring import DeliveryRing
from parallelrun_worker import frames


class RingHistory(RuleBasedStateMachine):
    """An agent that puts payloads and takes some back, and a worker that is done with them in order."""

    def __init__(self) -> None:
        super().__init__()
        self.ring = DeliveryRing()
        self.memory = mmap(self.ring.fd, frames.RING_SIZE)  # as the worker has it
        self.held: deque[tuple[int, bytes]] = deque()
        self.count = 0

    def teardown(self) -> None:
        self.memory.close()
        self.ring.close()

    @rule(size=st.integers(0, frames.MAX_PAYLOAD))
    def put(self, size: int) -> None:
        self.count += 1
        payload = bytes([self.count % 251]) * size
        position = self.ring.put(payload)
        if position >= 0:
            self.held.append((position, payload))
        else:
            assert sum(len(held) for _, held in self.held) > frames.RING_BYTES - 2 * frames.MAX_PAYLOAD, "there is room"

    @precondition(lambda self: self.held)
    @rule()
    def the_worker_is_done_with_one(self) -> None:
        position, payload = self.held.popleft()
        frames.POSITION.pack_into(self.memory, 0, position + len(payload))

    @precondition(lambda self: len(self.held) > 1)
    @rule(data=st.data())
    def take_back(self, data: st.DataObject) -> None:
        left = data.draw(st.integers(1, len(self.held) - 1))
        self.ring.rewind(self.held[left][0])
        while len(self.held) > left:
            self.held.pop()

    @invariant()
    def all_that_is_held_is_whole(self) -> None:
        assert all(self.ring.get(position, len(payload)) == payload for position, payload in self.held)


TestRing = RingHistory.TestCase


def test_what_is_still_needed_is_not_written_over() -> None:
    ring = DeliveryRing()
    first = ring.put(b"a" * frames.MAX_PAYLOAD)
    while ring.put(b"b" * frames.MAX_PAYLOAD) >= 0 and ring.end < 2 * frames.RING_BYTES:
        pass
    assert ring.get(first, frames.MAX_PAYLOAD) == b"a" * frames.MAX_PAYLOAD
    ring.close()
