"""Trials of sizes of mini-batches, of a job that chooses them itself: which of them get through. Pure bookkeeping, no
I/O.

A mini-batch with more items than any that is done is a trial: something may depend on how many there are, such as open
files or memory, and what is cut stays so. So only a few are cut until one of them is done. If they all fail, no
mini-batch has more than half as many, until one that has is done after all.
"""

from __future__ import annotations

from collections import deque
from typing import Final

MOST_TRIALS: Final = 3
"""Several, as a single one may fail because of what is in it."""


class Trials:
    """The sizes that were tried, and how each ended. `cut` may be called in another thread than all else.

    Args:
        most: how many items a mini-batch may have at most.
    """

    def __init__(self, most: int) -> None:
        self.proven = 1
        """The most items that a mini-batch has which is done."""
        self.most = most
        """More than these are not to be tried."""
        self._failed: dict[int, int] = {}
        """Trials that failed, by the numbers of the mini-batches: their items."""
        self._cut: deque[int] = deque()
        self._open: list[int] = []
        self._count = 0
        self._allowed = MOST_TRIALS

    @property
    def may_begin(self) -> bool:
        """Return whether a mini-batch may be cut with more items than are proven."""
        return self._count < self._allowed

    def cut(self, items: int) -> None:
        """A mini-batch with so many items is cut."""
        if items > self.proven:
            self._cut.append(items)
            self._count += 1

    def done(self, items: int) -> None:
        """A mini-batch with so many items is done."""
        if items > self.proven:
            self.proven, self.most = items, max(self.most, items)
            self._failed = {number: size for number, size in self._failed.items() if size > items}

    def stopped(self, items: int) -> None:
        """A mini-batch with so many items took too long at all its tries, which says nothing of another time."""
        self._take()
        if items in self._open:
            self._open.remove(items)

    def failed(self, mini_batch: int, items: int) -> None:
        self.stopped(items)
        if self.proven < items <= self.most:
            self._failed[mini_batch] = items
            if len(self._failed) >= MOST_TRIALS:
                self.most = max(self.proven, min(self._failed.values()) // 2)
                self._failed.clear()

    def refresh(self) -> None:
        """Allow as many trials as are to be: called when something has ended."""
        count = self._count  # before what is counted by it is taken, so that none is forgotten
        self._take()
        self._open = [items for items in self._open if items > self.proven]
        self._allowed = count + MOST_TRIALS - len(self._open) - len(self._failed)

    def _take(self) -> None:
        while self._cut:
            self._open.append(self._cut.popleft())
