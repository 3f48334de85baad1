"""The publishing window: how far ahead of the decisions mini-batches are published. Pure arithmetic, no I/O."""

from __future__ import annotations

MAX_MESSAGES = 1000
"""Messages in one publishing call: other calls of Redis wait meanwhile."""
MAX_OUTSTANDING = 20_000
MAX_OUTSTANDING_BYTES = 64 << 20
"""Of what no agent has leased yet: a thousand nodes may run more than that at the same time."""


class Window:
    """The number of mini-batches on Redis, and how many may follow. It is bounded, so twenty million files need no more
    than a few."""

    def __init__(self) -> None:
        self.next_id = 0
        """The first mini-batch that is not published."""
        self.outstanding = 0
        """How many are published and not decided."""
        self.leased = 0
        """How many of them were with agents when it was refreshed last."""
        self._message_bytes = 0

    def rewind(self, next_id: int, outstanding: int) -> None:
        """Continue from Redis' checkpoint: it may have forgotten the last moment."""
        self.next_id, self.outstanding = next_id, outstanding

    def refresh(self, outstanding: int, leased: int) -> None:
        """Redis' own counts. When Redis was set back, what is decided a second time is not passed to `decided`."""
        self.outstanding, self.leased = outstanding, leased

    def decided(self, count: int) -> None:
        """This many of the outstanding ones are decided."""
        self.outstanding = max(0, self.outstanding - count)

    @property
    def has_plenty(self) -> bool:
        """Return whether so many wait for an agent that no more need be published for a while."""
        return self.outstanding - self.leased > MAX_OUTSTANDING // 2

    def room(self, scheduled: int) -> int:
        """Return how many to publish now of `scheduled` durable mini-batches: 0, or enough of them
        to be worth a call.
        """
        waiting = max(0, self.outstanding - self.leased)
        room = MAX_OUTSTANDING - waiting
        if self.outstanding:
            room = min(room, MAX_OUTSTANDING_BYTES // max(1, self._message_bytes) - waiting)
        count = min(room, scheduled - self.next_id, MAX_MESSAGES)
        if count < MAX_MESSAGES and self.has_plenty:
            return 0
        return max(0, count)

    def published(self, messages: list[bytes], *, next_id: int, outstanding: int) -> bool:
        """Redis' answer to these; False when its checkpoint is elsewhere, and `rewind` is needed."""
        if next_id != self.next_id + len(messages):
            return False
        self.next_id, self.outstanding = next_id, outstanding
        self._message_bytes = sum(map(len, messages)) // len(messages)
        return True
