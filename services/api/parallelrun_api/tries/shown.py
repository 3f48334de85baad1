"""Numbers as they are shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from parallelrun_core.tries.columns import Array


def numbers(values: Array, digits: int = 6) -> list[float | None]:
    """Rounded; None for what is infinite or no number."""
    rounded = np.round(values.astype("f8"), digits)
    values_or_none: list[float | None] = rounded.tolist()
    unknown: list[int] = np.flatnonzero(~np.isfinite(rounded)).tolist()
    for each in unknown:
        values_or_none[each] = None
    return values_or_none


def number(value: float, digits: int = 6) -> float | None:
    """Return one of these."""
    return numbers(np.array([value]), digits)[0]
