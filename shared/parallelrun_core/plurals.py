"""Numbers of things, as people read them."""

from __future__ import annotations

from typing import Final

_HISSES: Final = ("ch", "s", "x")


def counted(count: int, one: str, many: str = "") -> str:
    """Return a number of things with their name: `1 node`, `2,000 nodes`.

    Args:
        many: the name of more of them; by default with `s`, or `es` after a hiss: `2 batches`.
    """
    return f"{count:,} {one if count == 1 else many or one + ('es' if one.endswith(_HISSES) else 's')}"
