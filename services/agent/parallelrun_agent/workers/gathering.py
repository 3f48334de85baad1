"""A queue from one thread to another that hands over in groups: for work that costs as much for many as for one."""

from __future__ import annotations

import threading
from collections import deque
from typing import Generic, TypeVar

T = TypeVar("T")


class GroupQueue(Generic[T]):
    """A queue to which one thread adds, and from which another one takes groups. While it is at one group, the next one
    gathers.

    Args:
        most_s: how long a group that nobody is in a hurry for may gather after the taker is ready for it.
    """

    def __init__(self, most_s: float) -> None:
        self._most_s = most_s
        self._items: deque[T] = deque()
        self._news = threading.Condition()
        """Guards the two below, and every wait. Items come and go without it: `deque` takes care of itself."""
        self._is_awaited = False
        self._is_over = False

    def add(self, item: T) -> None:
        """Add to the next group. For one thread only."""
        self._items.append(item)
        # After any other item, the taker is awake, or it takes that one and checks for more before it waits again.
        if len(self._items) == 1:
            with self._news:
                self._news.notify()

    def hurry(self) -> None:
        """Gather no longer, as what was added is awaited. For the thread that adds."""
        if self._items and not self._is_awaited:
            with self._news:
                self._is_awaited = True
                self._news.notify()

    def finish(self) -> None:
        """Nothing more will be added."""
        with self._news:
            self._is_over = True
            self._news.notify()

    def next_group(self) -> list[T]:
        """All that has gathered, in order; waits for the first. Empty when it is over. For one thread only."""
        with self._news:
            self._news.wait_for(lambda: self._items or self._is_over)
            self._news.wait_for(lambda: self._is_awaited or self._is_over, self._most_s)
            self._is_awaited = False
            return [self._items.popleft() for _ in range(len(self._items))]
