"""The publisher: moves mini-batches from the manifest to the queue in order, within bounds.

Publishing stops when enough is on Redis, so a job of twenty million files needs no more memory than a small one.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

from parallelrun_core.folder.decided import Decided
from parallelrun_core.folder.manifest import ManifestCursor, ManifestEntry
from parallelrun_core.service import failpoints
from parallelrun_core.store.leader_queue import LeaderQueue
from parallelrun_core.wire.message import MAX_MESSAGE_BYTES, RetriedItems, decode, encode_reference, encode_retried
from parallelrun_core.wire.outcome import Outcome
from parallelrun_master.policy.window import Window
from parallelrun_master.publishing.handover import Handover

_CALL_BYTES = 4 << 20


class Publisher:
    """Puts the manifest's mini-batches on Redis, in order, as far ahead as the window allows.

    Args:
        handover: the scheduler's; without one, all is read from the manifest.
    """

    def __init__(self, folder: Path, queue: LeaderQueue, decided: Decided, handover: Handover | None = None) -> None:
        self.window = Window()
        self._handover = handover or Handover()
        self._folder = folder
        self._queue = queue
        self._decided = decided
        self._cursor: ManifestCursor | None = None
        self._expedited: frozenset[int] = frozenset()
        self.rewind()

    def rewind(self) -> None:
        """Continue from Redis' checkpoint: it may have forgotten the last moment."""
        self.close()
        next_id = self._queue.checkpoint()
        self._expedited = self._queue.expedited()
        self.window.rewind(next_id, self._queue.publish(next_id, []).outstanding)

    def close(self) -> None:
        """Close the manifest; what follows is read from it anew."""
        if self._cursor is not None:
            self._cursor.close()
            self._cursor = None

    def step(self, scheduled: int) -> bool:
        """Publish what may be published now of `scheduled` durable mini-batches; returns whether anything was.

        Redis takes nothing when the job is in another state, or its checkpoint is elsewhere.
        """
        count = self.window.room(scheduled)
        messages = self._messages(count) if count else []
        if not messages:
            return False
        failpoints.reach("publish.before")
        published = self._queue.publish(self.window.next_id, messages)
        failpoints.reach("publish.after")
        if self.window.published(messages, next_id=published.next_id, outstanding=published.outstanding):
            return True
        self.rewind()
        return False

    def _messages(self, count: int) -> list[bytes]:
        first = self.window.next_id
        messages = [] if self._cursor else self._handover.take(first, count, _CALL_BYTES)
        messages = messages or self._read(first, count)
        following = first + len(messages)
        if retried := self._decided.retried:
            messages = [
                _of_items(message, retried[number]) if number in retried else message
                for number, message in enumerate(messages, first)
            ]
        if self._decided.has_any(first, following) or any(first <= each < following for each in self._expedited):
            skipped = (number in self._decided or number in self._expedited for number in range(first, following))
            return [b"" if skip else message for skip, message in zip(skipped, messages, strict=True)]
        return messages

    def expedite(self, mini_batches: Iterable[int]) -> None:
        """Let durable mini-batches be run next, out of order."""
        messages = []
        for mini_batch in mini_batches:
            with closing(ManifestCursor(self._folder, first=mini_batch)) as cursor:
                messages.append((mini_batch, for_redis(cursor.read_whole())))
        self._queue.expedite(messages)
        self._expedited = self._queue.expedited()

    def _read(self, first: int, count: int) -> list[bytes]:
        """Read the next messages from the manifest, where they are durable; from now on, all are."""
        if self._cursor is None:
            self._handover.end()
            self._cursor = ManifestCursor(self._folder, first=first)
        messages: list[bytes] = []
        size = 0
        while len(messages) < count and size < _CALL_BYTES:
            entry = self._cursor.read_whole()
            message = for_redis(entry)
            messages.append(message)
            size += len(message)
        return messages


def _of_items(message: bytes, earlier: Outcome) -> bytes:
    """The message for running only the items that have failed, or all where rows can't be told apart by item."""
    lost = [(each.first, each.items) for each in earlier.lost]
    is_even = earlier.rows + sum(count for _, count in lost) == earlier.items
    if not is_even or earlier.line_breaks:
        return message
    items = RetriedItems(
        earlier.part, earlier.offset, earlier.length, earlier.crc, earlier.rows, earlier.items, lost
    )  # fmt: skip
    wrapped = encode_retried(message, items)
    return wrapped if len(wrapped) <= MAX_MESSAGE_BYTES else message


def for_redis(entry: ManifestEntry) -> bytes:
    """The message itself, or a reference to it in the manifest when it is too long for Redis."""
    if len(entry.raw) <= MAX_MESSAGE_BYTES:
        return entry.raw
    return encode_reference(decode(entry.raw).items, entry.term, entry.offset)
