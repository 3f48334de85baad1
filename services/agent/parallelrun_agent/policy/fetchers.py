"""The number of objects that a node fetches at the same time: enough to hide how long a store takes to answer. No I/O.

What counts is the quickest of the last answers. The others may have waited for this node itself, and then more at the
same time would only make all of them wait longer.
"""

from __future__ import annotations

import math
from typing import Final

MIN_FETCHERS: Final = 16
"""What keeps two CPUs busy with objects of a store next to them."""
MAX_FETCHERS: Final = 96
_QUICK_S: Final = 0.02
"""So fast an answer needs no more than the fewest."""
_WINDOW: Final = 32
"""Answers from which the quickest is taken."""


class Fetchers:
    """Used by many threads under their lock."""

    def __init__(self) -> None:
        self.wanted = MIN_FETCHERS
        """How many there should be."""
        self._quickest_s = math.inf
        self._answers = 0

    def answered(self, seconds: float) -> None:
        """A small object came after so long."""
        self._quickest_s = min(self._quickest_s, seconds)
        self._answers += 1
        if self._answers < _WINDOW:
            return
        self.wanted = min(MAX_FETCHERS, max(MIN_FETCHERS, math.ceil(MIN_FETCHERS * self._quickest_s / _QUICK_S)))
        self._quickest_s, self._answers = math.inf, 0
