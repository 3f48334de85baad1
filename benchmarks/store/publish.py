"""Rows of a job published to the store, each round in a process of its own; in turn with it: a bare multipart upload of
the same bytes by hand, in parts of the same size, as many at once, without a look at what they are.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from benchmarks import Size, concatenation
from benchmarks.measure import Comparison, Figures, peak_mb
from benchmarks.store import server
from tests.object_servers import BUCKET

_PART_BYTES: Final = 8 << 20
_AT_ONCE: Final = 3
_SEGMENT_BYTES: Final = 65_536


def publish(folder: Path, key: str) -> int:
    """As a concatenator does it; returns how many bytes that were."""
    from parallelrun_concatenator.merge import merge
    from parallelrun_concatenator.segments import SegmentTable

    table = SegmentTable(folder)
    return merge(table.in_order(), folder / "parts", f"s3://{BUCKET}/{key}", lambda _: None).length


def upload(folder: Path, key: str) -> int:
    """By hand."""
    from parallelrun_core.storage.objects.address import address_of
    from parallelrun_core.storage.objects.uploads import s3

    client, where = s3.place_of(address_of(f"s3://{BUCKET}/{key}"))
    begun = client.create_multipart_upload(**where)["UploadId"]
    files = [(path, path.stat().st_size) for path in sorted((folder / "parts").iterdir())]
    whole = sum(size for _, size in files)

    def put(number: int) -> dict[str, object]:
        body = _read(files, (number - 1) * _PART_BYTES, _PART_BYTES)
        answer = client.upload_part(**where, UploadId=begun, PartNumber=number, Body=body)
        return {"PartNumber": number, "ETag": answer["ETag"]}

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        parts = list(pool.map(put, range(1, -(-whole // _PART_BYTES) + 1)))
    client.complete_multipart_upload(**where, UploadId=begun, MultipartUpload={"Parts": parts})
    return whole


def _read(files: list[tuple[Path, int]], at: int, size: int) -> bytes:
    """These bytes of all files in a row."""
    pieces = []
    for path, length in files:
        if at < length and size > 0:
            with path.open("rb", buffering=0) as file:
                file.seek(at)
                pieces.append(file.read(min(size, length - at)))
            size -= len(pieces[-1])
        at = max(0, at - length)
    return b"".join(pieces)


def _round(way: Callable[[Path, str], int], folder: Path) -> Figures:
    command = [sys.executable, "-m", "benchmarks.store.publish", way.__name__, str(folder)]
    with server.empty_store():  # what was replaced still fills the disk of the one that others use
        answer = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    figures: Figures = json.loads(answer.stdout)
    return figures


def _measured(way: Callable[[Path, str], int], folder: Path) -> Figures:
    began = time.perf_counter()
    size = way(folder, way.__name__)
    wall = time.perf_counter() - began
    return {
        "mb_per_s": size / wall / 1e6, "wall_s": wall, "cpu_s": time.process_time(), "peak_mb": peak_mb(os.getpid()),
    }  # fmt: skip


def main(size: Size) -> dict[str, object]:
    """Measure; returns what the last line says."""
    if not server.available():
        return {"publish_to_bare": "not_measured"}
    rounds, whole = {"tiny": (1, 20_000_000), "quick": (3, 1_000_000_000), "full": (5, 5_000_000_000)}[size]
    with tempfile.TemporaryDirectory(prefix="parallelrun-bench-") as scratch:
        folder = Path(scratch) / "job_00000000000000000000"
        concatenation.make(folder, whole // _SEGMENT_BYTES, _SEGMENT_BYTES)
        systems: dict[str, Callable[[], Figures]] = {
            "bare upload": lambda: _round(upload, folder),
            "ParallelRun": lambda: _round(publish, folder),
        }
        compared = Comparison(systems).run(rounds)
    print(compared.table())
    last = compared.ratio("ParallelRun", "bare upload", "mb_per_s").fields("publish_to_bare")
    return {**last, "publish_peak_mb": f"{compared.spread('ParallelRun', 'peak_mb').high:.0f}"}


if __name__ == "__main__":
    if len(sys.argv) == 1:
        print(main("quick"))
    else:
        print(json.dumps(_measured({"publish": publish, "upload": upload}[sys.argv[1]], Path(sys.argv[2]))))
