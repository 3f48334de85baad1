"""A cache of values that never change, with the least recently read ones dropped."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from typing import Generic, TypeVar

Value = TypeVar("Value")


class LruCache(Generic[Value]):
    """Values by name: those that were used last, up to a number. Safe to share between threads."""

    def __init__(self, max_entries: int) -> None:
        self._max_entries = max_entries
        self._values: OrderedDict[str, Value] = OrderedDict()
        self._lock = Lock()

    def get(self, name: str) -> Value | None:
        """The value of this name, if it is remembered."""
        with self._lock:
            value = self._values.get(name)
            if value is not None:
                self._values.move_to_end(name)
            return value

    def put(self, name: str, value: Value) -> Value:
        """Remember a value; returns it."""
        with self._lock:
            self._values[name] = value
            self._values.move_to_end(name)
            while len(self._values) > self._max_entries:
                self._values.popitem(last=False)
        return value
