"""The secrets of a process: made by its `main`, which hands them to whoever reads secrets, and closes them at its end.

The source that the settings name is made once, when it is first asked. A process that is forked makes another one, when
it first asks: connections and tokens are its own, and those of its parent stay as they are. So a service may be forked
at any moment, and drop rights before it asks.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from parallelrun_core.service.secret_source import SecretSource, SecretUnusable
from parallelrun_core.service.secret_sources import SETTING, source_at


@dataclass
class _Opened:
    """A source of one process, and its lock: one that is inherited might be held by a thread that is not here."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    source: SecretSource | None = None


class ProcessSecrets(SecretSource):
    """The secrets of this process, by names such as `db/password`. Many threads may ask; one at a time gets through.

    Args:
        place: `secrets_dir` of the service's settings; empty: this process has no secrets.
    """

    def __init__(self, place: str) -> None:
        super().__init__(place)
        self._by_process: dict[int, _Opened] = {}

    def read(self, name: str) -> bytes:
        if not self.place:
            raise SecretUnusable(
                f"give this service a folder of secrets (--secrets-dir, {SETTING}), and put it there as {name}"
            )
        with self._source() as source:
            return source.read(name)

    def stamp(self, name: str) -> object:
        if not self.place:
            return None
        with self._source() as source:
            return source.stamp(name)

    def close(self) -> None:
        """Close the source of this process, if it has been asked; it is made anew when it is asked again."""
        opened = self._by_process.pop(os.getpid(), None)
        if opened is not None and opened.source is not None:
            with opened.lock:
                opened.source.close()

    @contextmanager
    def _source(self) -> Iterator[SecretSource]:
        opened = self._by_process.setdefault(os.getpid(), _Opened())  # one step, whichever thread is first
        with opened.lock:
            if opened.source is None:
                opened.source = source_at(self.place)
            yield opened.source
