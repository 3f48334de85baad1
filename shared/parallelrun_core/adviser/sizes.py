"""Sizes of mini-batches as a job file has them."""

from __future__ import annotations

_MB = 1 << 20


def size_text(size: int, unit: str) -> str:
    """A value for `mini_batch_size`."""
    if unit == "rows":
        return f"rows:{size}"
    if unit == "bytes":
        return f"{size // _MB}mb" if size % _MB == 0 else f"{max(1, size // 1024)}kb"
    return str(size)


def of_size(size: int, factor: int, unit: str) -> str:
    """Return a size divided by a factor and rounded up, with its unit."""
    return size_text(-(-size // factor), unit)
