"""The cost of a job: what its scripts report as spent, beside its budget.

Amounts are whole billionths of a US dollar, so that their sums are exact.
"""

from __future__ import annotations

import math
from typing import Final

import msgspec

NANO_PER_USD: Final = 10**9


class Spent(msgspec.Struct, array_like=True, frozen=True):
    """The cost that was reported on one node since it joined a job: a total, so reading it twice does no harm."""

    spender: str
    """The node, and a name that no other stay of it in a job has."""
    nano: int


def in_usd(nano: int) -> float:
    """Return an amount in US dollars."""
    return nano / NANO_PER_USD


def usd_text(usd: float) -> str:
    """Return an amount for people: cents, and of less than a dollar four digits that say something."""
    if usd >= 1 or usd <= 0:
        return f"${usd:,.2f}"
    whole, _, decimals = f"{usd:.{3 - math.floor(math.log10(usd))}f}".partition(".")
    return f"${whole}.{decimals.rstrip('0').ljust(2, '0')}"
