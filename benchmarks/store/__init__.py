"""Inputs and outputs in an object store, a real one on this machine (SeaweedFS, which speaks S3).

    hashing.py   20,000 objects of 64 KB, compared with a loop and with local files
    ahead.py     how busy workers are when each answer of the store takes 200 ms
    listing.py   1,000,000 keys: to the first run(), and what each costs
    tables.py    tables in the store, compared with the same on the disk
    publish.py   rows published to the store, compared with a bare upload

`python -m benchmarks.store.SCRIPT` runs one of them. The store shares the CPUs of this machine with all who use it.
"""

from __future__ import annotations

from contextlib import nullcontext
from importlib import import_module
from typing import Final

from benchmarks import Size
from benchmarks.store import server

FIRST: Final = (
    "wall_to_best", "ratio_to_ray_data", "ratio_to_s3fs", "second_run_to_local", "busy", "first_run_s",
    "keys_per_cpu_s", "csv_to_local", "parquet_to_local", "publish_to_bare",
)  # fmt: skip
"""What the last line begins with."""
PARTS: Final = ("hashing", "ahead", "listing", "tables", "publish")


def main(size: Size) -> dict[str, object]:
    """Measure all parts; returns what the last line says."""
    measured: dict[str, object] = {}
    with server.store() if server.available() else nullcontext():
        for part in PARTS:
            print(f" {part} ({size})", flush=True)
            measured |= import_module(f"{__name__}.{part}").main(size)
    return dict.fromkeys(FIRST, "not_measured") | measured
