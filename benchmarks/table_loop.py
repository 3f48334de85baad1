"""Bare loops over a table in two processes at the same time, each of which reads every other range of it."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from benchmarks.measure import Comparison, Figures, Spread
from parallelrun_core.wire.message import Piece

WORKERS: Final = 2
_DRIVER: Final = """
import json, sys, time
path, *ranges = json.load(sys.stdin)
began = time.perf_counter()
rows = sum(len(read(path, *each)) for each in ranges)
print(rows, time.perf_counter() - began)
"""


def run_loop(read: str, path: Path, ranges: Sequence[tuple[int, ...]], rows: int) -> Figures:
    """The loops, from the start of their processes to their end; `loop_` is without that start.

    Args:
        read: defines `read(path, *range)`, which returns a DataFrame.

    Raises:
        RuntimeError: they found another number of rows.
    """
    began = time.perf_counter()
    command = [sys.executable, "-c", read + _DRIVER]
    processes = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(WORKERS)
    ]
    for number, process in enumerate(processes):
        assert process.stdin is not None  # noqa: S101 - for the type checker: it is a pipe
        json.dump([str(path), *ranges[number::WORKERS]], process.stdin)
        process.stdin.close()
    found = [process.stdout.read().split() for process in processes if process.stdout is not None]
    if any([process.wait() for process in processes]) or sum(int(counted) for counted, _ in found) != rows:  # noqa: C419
        raise RuntimeError(f"the loops counted {found}, not {rows:,}")
    size_mb = path.stat().st_size / 1e6
    loop_s = max(float(seconds) for _, seconds in found)
    return {"mb_per_s": size_mb / (time.perf_counter() - began), "loop_mb_per_s": size_mb / loop_s}


def ranges_of_lines(path: Path, pieces: list[Piece], *, has_header: bool) -> list[tuple[int, int]]:
    """The bytes of the records that each piece owns; a header is nobody's."""
    with path.open("rb") as file:

        def record_from(at: int) -> int:
            if at == 0 and not has_header:
                return 0
            file.seek(max(at - 1, 0))
            file.readline()
            return file.tell()

        starts = [piece.start if piece.is_aligned else record_from(piece.start) for piece in pieces]
    return list(zip(starts, [*starts[1:], path.stat().st_size], strict=True))


def ratios(found: Comparison, loops: Sequence[str], *, name: str, prefix: str = "") -> dict[str, object]:
    """What a last line says of jobs beside the best of these loops, round by round.

    Args:
        name: of the best one, with its start; `ratio_to_loop` is without.
    """
    ours = found.values("ParallelRun", "mb_per_s")
    last: dict[str, object] = {**found.spread("ParallelRun", "mb_per_s").fields(f"{prefix}mb_per_s", 0)}
    for figure, key in (("mb_per_s", f"ratio_to_{name}"), ("loop_mb_per_s", "ratio_to_loop")):
        best = [max(theirs) for theirs in zip(*(found.values(loop, figure) for loop in loops), strict=True)]
        last |= Spread.of(mine / theirs for mine, theirs in zip(ours, best, strict=True)).fields(f"{prefix}{key}")
    return last
