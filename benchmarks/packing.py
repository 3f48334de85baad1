"""How many paths fit in one message of 64 KiB, and what packing and unpacking cost, per path.

Three patterns of names, each in sorted order: counted, random, and a GUID with a time. A random name of 32 hex digits
has 16 bytes of entropy, so no more than 4,096 of them fit.
"""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Callable

from benchmarks import Size
from benchmarks.measure import Comparison, Figures
from parallelrun_core.wire.message import MAX_MESSAGE_BYTES, decode, encode_files, paths_of

_FOLDER = b"/mnt/data/2020/10"
_ORDINARY = 100
_SEED = 7


def counted(count: int) -> list[bytes]:
    return [b"ILSVRC2012_val_%08d.JPEG" % number for number in range(1, count + 1)]


def hexes(count: int) -> list[bytes]:
    draw = random.Random(_SEED)
    return sorted(b"%032x.jpg" % draw.getrandbits(128) for _ in range(count))


def guids(count: int) -> list[bytes]:
    draw, at, names = random.Random(_SEED), 1_602_500_000.0, []
    for _ in range(count):
        at += draw.expovariate(3.0)
        stamp = time.strftime("%Y%m%dT%H%M%S", time.gmtime(at)) + f"{int(at % 1 * 1000):03d}Z"
        names.append(f"{uuid.UUID(int=draw.getrandbits(128), version=4)}_{stamp}.json".encode())
    return sorted(names)


PATTERNS: dict[str, tuple[Callable[[int], list[bytes]], int]] = {
    "counted": (counted, 500_000),
    "hex": (hexes, 5_000),
    "guid": (guids, 5_000),
}


def fits(names: list[bytes]) -> int:
    """How many of these names fit in one message, to a thousandth."""
    low, high = 0, len(names)
    while high - low > max(1, high // 1000):
        middle = (low + high) // 2
        if len(encode_files([(_FOLDER, names[:middle])], middle)) <= MAX_MESSAGE_BYTES:
            low = middle
        else:
            high = middle
    return low


def measure(names: list[bytes], repeat: int) -> Figures:
    """Microseconds per path, of a full message and of an ordinary one."""
    whole = names[: fits(names)]
    groups, few = [(_FOLDER, whole)], [(_FOLDER, names[:_ORDINARY])]
    raw, small = encode_files(groups, len(whole)), encode_files(few, _ORDINARY)
    return {
        "paths": len(whole),
        "encode_full_us": _us(lambda: encode_files(groups, len(whole)), 5, len(whole)),
        "decode_full_us": _us(lambda: paths_of(decode(raw)), 5, len(whole)),
        "encode_us": _us(lambda: encode_files(few, _ORDINARY), repeat, _ORDINARY),
        "decode_us": _us(lambda: paths_of(decode(small)), repeat, _ORDINARY),
    }


def _us(call: Callable[[], object], times: int, paths: int) -> float:
    began = time.process_time()
    for _ in range(times):
        call()
    return (time.process_time() - began) / times / paths * 1e6


def main(size: Size) -> dict[str, object]:
    """Measure; returns what the last line says."""
    rounds, repeat = {"tiny": (1, 50), "quick": (3, 2_000), "full": (7, 5_000)}[size]
    listed = {pattern: make(count) for pattern, (make, count) in PATTERNS.items()}
    found = Comparison(
        {pattern: lambda names=names: measure(names, repeat) for pattern, names in listed.items()}  # type: ignore[misc]
    ).run(rounds)
    print(found.table())
    last: dict[str, object] = {}
    for pattern in PATTERNS:
        last[f"{pattern}_paths"] = int(found.spread(pattern, "paths").median)
        for figure in ("encode_us", "decode_us", "encode_full_us"):
            last[f"{pattern}_{figure}"] = f"{found.spread(pattern, figure).median:.3f}"
    return last
