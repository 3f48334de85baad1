"""Numbers of things, as people read them."""

from __future__ import annotations


def counted(count: int, one: str) -> str:
    """Return a number of things with their name: `1 row`, `2,000 rows`."""
    return f"{count:,} {one if count == 1 else one + 's'}"
