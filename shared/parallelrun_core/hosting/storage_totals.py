"""Totals of the requests to object stores of the processes that a service forks. The service asks nothing, and is
scraped."""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Final

import msgspec

from parallelrun_core.storage.objects.meters import Operation, Reading, RequestCounts, reading, since

_READ_BYTES: Final = 1 << 20


class StorageTotals:
    """Made before processes are forked. Each hands its counts over with each job; one that is killed has none."""

    def __init__(self) -> None:
        self._source, self._target = os.pipe()
        for end in (self._source, self._target):
            os.set_blocking(end, False)
        self._lock = threading.Lock()
        self._rest = b""
        self._totals: Reading = {}

    def handed_over(self, run: Callable[[str], object]) -> Callable[[str], object]:
        """Wrap a function for processes of their own: what is counted while it runs is handed over at its end."""

        def run_and_hand_over(job_id: str) -> object:
            before = reading()
            try:
                return run(job_id)
            finally:
                self._hand_over(before)

        return run_and_hand_over

    def reading(self) -> Reading:
        """Return what has been asked by all that has ended."""
        with self._lock:
            with suppress(BlockingIOError):
                while data := os.read(self._source, _READ_BYTES):
                    *lines, self._rest = (self._rest + data).split(b"\n")
                    for line in lines:
                        self._add(line)
            return dict(self._totals)

    def _hand_over(self, before: Reading) -> None:
        for labels, requests in since(before).items():
            line = msgspec.json.encode((*labels, requests)) + b"\n"
            # So much is written whole or not at all, which happens when nobody scrapes.
            if len(line) <= select.PIPE_BUF:
                with suppress(BlockingIOError):
                    os.write(self._target, line)

    def _add(self, line: bytes) -> None:
        store, operation, requests = msgspec.json.decode(line, type=tuple[str, Operation, RequestCounts])
        self._totals[store, operation] = self._totals.get((store, operation), RequestCounts()).plus(requests)
