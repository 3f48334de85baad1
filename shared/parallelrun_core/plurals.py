"""Numbers of things, as people read them."""

from __future__ import annotations


def counted(count: int, one: str, many: str = "") -> str:
    """Return a number of things with their name: `1 node`, `2,000 nodes`.

    Args:
        many: the name of more of them; by default with an s.
    """
    return f"{count:,} {one if count == 1 else many or one + 's'}"
