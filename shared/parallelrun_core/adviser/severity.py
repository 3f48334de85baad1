"""Severity of a finding: as severe as the least of its share, its seconds, and its number of cases say.

So neither a large share of a short job, nor minutes of a long one, nor one odd mini-batch looks like a catastrophe. The
idea, and four steps of each measure that roughly double or quadruple, are those of the heuristics of Dr. Elephant
(LinkedIn): for skewed data, it takes the least of the severities of the ratio (2/4/8/16), of the size and of the number
of tasks.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Final

from parallelrun_core.adviser.advice import LEVELS, Severity, Thresholds

_SHARES: Final = (0.10, 0.20, 0.35, 0.50)
_SECONDS: Final = (1.0, 5.0, 15.0, 60.0)
"""Times what is worth saying: with its default, 1, 5, 15 minutes and an hour."""
_CASES: Final = (1, 4, 10, 30)
"""Tries that were measured."""


def severity(*, share: float, seconds: float, cases: int, thresholds: Thresholds) -> Severity:
    """The least of the three; at least `low`."""
    unit = thresholds.seconds or 1.0
    steps = (
        bisect_right(_SHARES, share),
        bisect_right([each * unit for each in _SECONDS], seconds),
        bisect_right(_CASES, cases),
    )
    return LEVELS[max(0, min(steps) - 1)]
