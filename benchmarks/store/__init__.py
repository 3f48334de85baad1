"""Inputs and outputs in an object store, a real one on this machine (SeaweedFS, which speaks S3).

    hashing.py   20,000 objects of 64 KB, compared with loops and systems that do the same
    listing.py   1,000,000 keys: to the first run(), and what each costs

`python -m benchmarks.store.SCRIPT` runs one of them. The store shares the CPUs of this machine with all who use it.
"""

from __future__ import annotations

from importlib import import_module
from typing import Final

from benchmarks import Size

PARTS: Final = ("hashing", "listing")


def main(size: Size) -> dict[str, object]:
    """Measure all parts; returns what the last line says."""
    last: dict[str, object] = {}
    for part in PARTS:
        print(f" {part} ({size})", flush=True)
        last |= import_module(f"{__name__}.{part}").main(size)
    return last
