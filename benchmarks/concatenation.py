"""Concatenation of rows: segments of 64 KB, and of 300 B, in mini-batch order, with every crc checked, a sha256 of the
whole, and a sync. In turn with it: `cat` of the same part files into one, and a sync. Both find the parts as the last
round left them, in the page cache as far as they fit.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
import zlib
from collections.abc import Callable
from itertools import cycle
from pathlib import Path

from benchmarks import Size
from benchmarks.measure import Comparison, Figures
from parallelrun_concatenator.merge import merge
from parallelrun_concatenator.segments import SegmentTable
from parallelrun_core.folder.decisions import DecisionWriter
from parallelrun_core.wire.outcome import Outcome

_PARTS = 2
_AT_ONCE = 1000


def make(folder: Path, segments: int, size_bytes: int) -> None:
    """A decided job: its part files, and the decisions about their rows."""
    parts = folder / "parts"
    parts.mkdir(parents=True)
    rows = [os.urandom(size_bytes - 1).replace(b"\n", b".") + b"\n" for _ in range(64)]
    crcs = [zlib.crc32(row) for row in rows]
    ends = dict.fromkeys([f"session.process{number:03d}" for number in range(_PARTS)], 0)
    files = {part: (parts / part).open("wb", buffering=1 << 20) for part in ends}
    log, group = DecisionWriter(folder, 1), []
    for mini_batch, part in zip(range(segments), cycle(ends), strict=False):
        which = mini_batch % len(rows)
        files[part].write(rows[which])
        group.append(_outcome(mini_batch, part, ends[part], size_bytes, crcs[which]))
        ends[part] += size_bytes
        if len(group) == _AT_ONCE or mini_batch == segments - 1:
            log.add(group)
            group = []
    for file in files.values():
        file.close()
    log.sync()
    log.close()
    os.sync()


def _outcome(mini_batch: int, part: str, offset: int, length: int, crc: int) -> Outcome:
    return Outcome(
        mini_batch=mini_batch, generation=0, status="done", token="session/0.1", tries=1, node="node",
        process=part[-10:], part=part, offset=offset, length=length, crc=crc, items=10, rows=10, started=1.7e9,
        elapsed_s=0.001, run_s=0.001, process_s=0.001,
    )  # fmt: skip


def run_ours(folder: Path) -> Figures:
    """From the decision log to the synced output."""
    cpu, began = time.process_time(), time.perf_counter()
    table = SegmentTable(folder)
    merged = merge(table.in_order(), folder / "parts", str(folder / "out" / "ours"), lambda _: None)
    wall, used = time.perf_counter() - began, time.process_time() - cpu
    if merged.length != table.bytes:
        raise RuntimeError(f"{merged.length:,} bytes, not {table.bytes:,}")
    (folder / "out" / "ours").unlink()
    return {"mb_per_s": merged.length / wall / 1e6, "wall_s": wall, "cpu_s": used}


def run_cat(folder: Path) -> Figures:
    """The bare copy."""
    target = folder / "cat"
    parts = sorted((folder / "parts").iterdir())
    before, began = os.times(), time.perf_counter()
    with target.open("wb") as out:
        subprocess.run(["cat", *parts], check=True, stdout=out)
        os.fsync(out.fileno())
    wall, after = time.perf_counter() - began, os.times()
    size = target.stat().st_size
    target.unlink()
    used = sum(after[:4]) - sum(before[:4])
    return {"mb_per_s": size / wall / 1e6, "wall_s": wall, "cpu_s": used}


def main(size: Size) -> dict[str, object]:
    """Measure; returns what the last line says."""
    sizes = {  # rounds, and bytes of all segments of 64 KB and of 300 B
        "tiny": (1, 10_000_000, 300_000),
        "quick": (3, 1_000_000_000, 60_000_000),
        "full": (7, 10_000_000_000, 300_000_000),
    }
    rounds, large, small = sizes[size]
    last: dict[str, object] = {"rounds": rounds}
    for name, whole, each in (("64KB", large, 65_536), ("300B", small, 300)):
        with tempfile.TemporaryDirectory(prefix="parallelrun-bench-") as scratch:
            folder = Path(scratch) / "job"
            make(folder, whole // each, each)
            systems: dict[str, Callable[[], Figures]] = {
                "cat and sync": lambda folder=folder: run_cat(folder),  # type: ignore[misc]
                "ParallelRun": lambda folder=folder: run_ours(folder),  # type: ignore[misc]
            }
            found = Comparison(systems).run(rounds)
        print(f"{whole // each:,} segments of {each:,} bytes\n{found.table()}")
        last[f"segments_{name}"] = whole // each
        last |= found.spread("ParallelRun", "mb_per_s").fields(f"mb_per_s_{name}", 0)
        last |= found.ratio("ParallelRun", "cat and sync", "mb_per_s").fields(f"ratio_{name}")
        last[f"cpu_s_{name}"] = f"{found.spread('ParallelRun', 'cpu_s').median:.2f}"
    return last
