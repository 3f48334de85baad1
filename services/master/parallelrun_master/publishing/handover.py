"""The hand-over of what the scheduler has just made durable to the publisher: it need not read that from the manifest
again."""

from __future__ import annotations

from collections import deque

from parallelrun_core.wire.message import MAX_MESSAGE_BYTES

_MAX_BYTES = 16 << 20
_BYTES_EACH = 64
"""What a message takes in memory besides its content."""


class Handover:
    """Messages of consecutive mini-batches, from the one to publish next.

    It is bounded: once listing is too far ahead, or a message is too long for Redis, nothing is added any more. What is
    not here has to be read from the manifest.
    """

    def __init__(self) -> None:
        self._messages: deque[bytes] = deque()
        self._first = 0
        self._bytes = 0
        self._is_open = True

    def add(self, first: int, messages: list[bytes]) -> None:
        """Offer the messages of the mini-batches from `first` on: they are durable, and follow those added before."""
        if not self._is_open or not messages:
            return
        size = sum(map(len, messages)) + _BYTES_EACH * len(messages)
        if self._bytes + size > _MAX_BYTES or max(map(len, messages)) > MAX_MESSAGE_BYTES:
            self._is_open = False
            return
        if not self._messages:
            self._first = first
        self._messages += messages
        self._bytes += size

    def take(self, first: int, count: int, max_bytes: int) -> list[bytes]:
        """Take messages from `first` on: `count` at most, and none after `max_bytes`. None when that is not here."""
        if first != self._first:
            return []
        messages: list[bytes] = []
        size = 0
        while self._messages and len(messages) < count and size < max_bytes:
            message = self._messages.popleft()
            messages.append(message)
            size += len(message)
        self._first += len(messages)
        self._bytes -= size + _BYTES_EACH * len(messages)
        return messages

    def end(self) -> None:
        """Hold nothing any more: the publisher reads from the manifest."""
        self._messages.clear()
        self._is_open = False
