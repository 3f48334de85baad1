"""Reads that are counted instead of listed one by one: the web page makes many each minute."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

KIND_OF: Final = {
    "search_logs": "logs", "list_logs": "logs",
    "list_mini_batches": "mini_batches", "show_mini_batch": "mini_batches",
    "show_metrics": "metrics",
    "show_tiles": "pictures", "show_timeline": "pictures", "show_throughput": "pictures", "show_errors": "pictures",
    "show_figures": "pictures", "compare_jobs": "pictures", "show_profile": "pictures", "show_profile_tree": "pictures",
    "show_stacks": "pictures",
    "list_outputs": "outputs", "list_remembered": "outputs",
    "get_asset": "assets", "get_asset_by_label": "assets", "resolve_asset": "assets", "list_asset_versions": "assets",
}  # fmt: skip
"""The kind of read that each route is which hands out what jobs have made."""
_WINDOW_S: Final = 300.0
_MOST: Final = 10_000


@dataclass(slots=True)
class _Window:
    facts: dict[str, Any]
    ends: float
    count: int = 0


@dataclass(slots=True)
class ReadCounts:
    """Counts reads: one line for each person, thing and kind in five minutes."""

    clock: Callable[[], float] = time.monotonic
    _windows: dict[tuple[str, str, str], _Window] = field(default_factory=dict)

    def add(self, kind: str, facts: dict[str, Any]) -> None:
        """Count a read.

        Args:
            facts: of the first one in its window, which stand in the line.
        """
        thing = str(facts.get("job_id") or facts.get("asset", ""))
        key = (str(facts["token_name"]), thing, kind)
        if (window := self._windows.get(key)) is None:
            window = self._windows[key] = _Window({**facts, "did": "read", "kind": kind}, self.clock() + _WINDOW_S)
        window.count += 1

    def ended(self, *, all_of_them: bool = False) -> Iterator[dict[str, Any]]:
        """The lines of those whose five minutes are over; they count as reported now."""
        now = self.clock()
        is_full = len(self._windows) > _MOST
        for key, window in list(self._windows.items()):
            if all_of_them or is_full or now >= window.ends:
                del self._windows[key]
                yield {**window.facts, "count": window.count}
            else:
                break  # the others began later
