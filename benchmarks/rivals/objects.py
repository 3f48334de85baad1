"""`python -m benchmarks.rivals.objects SYSTEM BUCKET PREFIX OUTPUT`: objects of a store that speaks S3, by one rival.

The work is that of `benchmarks/store/loop.py`: sha256 five times over each object, ten in a mini-batch, two workers.
The clock begins when the workers are warm, with the listing, and ends when all rows are in the output file. The last
line is JSON.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from hashlib import sha256
from typing import Any, Final

from benchmarks.rivals.work import EACH, WORKERS

_TIMES: Final = 5
_STORE_BYTES: Final = 2 << 30

Rows = Iterable[str]
_LEFT: Final[dict[str, Any]] = {}
"""What the initializer of a process leaves for its calls."""


def _row(key: str, content: bytes) -> str:
    digest = ""
    for _ in range(_TIMES):
        digest = sha256(content).hexdigest()
    return f"{key} {digest}"


def _open_s3fs() -> None:
    import s3fs

    _LEFT["files"] = s3fs.S3FileSystem(endpoint_url=os.environ["AWS_ENDPOINT_URL"], use_listings_cache=False)


def _hash_by_s3fs(keys: list[str]) -> list[str]:
    """`cat` fetches all of them at the same time."""
    return [_row(key, content) for key, content in _LEFT["files"].cat(keys).items()] if keys else []


@contextmanager
def s3fs_pool(bucket: str) -> Iterator[Callable[[str], Rows]]:
    """`multiprocessing.Pool` whose workers read by s3fs."""
    from multiprocessing import get_context

    _open_s3fs()
    with get_context("spawn").Pool(WORKERS, _open_s3fs) as pool:
        pool.map(_hash_by_s3fs, [[]] * WORKERS, chunksize=1)

        def run(prefix: str) -> Rows:
            keys = _LEFT["files"].find(f"{bucket}/{prefix}")
            for rows in pool.imap_unordered(_hash_by_s3fs, (keys[at : at + EACH] for at in range(0, len(keys), EACH))):
                yield from rows

        yield run


class _Hashing:
    """What a worker of Ray Data keeps between batches."""

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        return {"row": [_row(*each) for each in zip(batch["path"], batch["bytes"], strict=True)]}


@contextmanager
def ray_data(bucket: str) -> Iterator[Callable[[str], Rows]]:
    """`ray.data.read_binary_files`, and `map_batches` with two actors."""
    import ray.data
    from pyarrow.fs import S3FileSystem

    from benchmarks.rivals.ray_session import session

    logging.getLogger("ray.data").setLevel(logging.ERROR)
    scheme, _, host = os.environ["AWS_ENDPOINT_URL"].partition("://")
    files = S3FileSystem(endpoint_override=host, scheme=scheme, region=os.environ.get("AWS_REGION", "us-east-1"))

    def run(prefix: str) -> Rows:
        read = ray.data.read_binary_files(f"{bucket}/{prefix}", filesystem=files, include_paths=True)
        done = read.map_batches(_Hashing, batch_size=EACH, concurrency=WORKERS, num_cpus=0.5)
        for row in done.iter_rows():
            yield row["row"]

    with session(_STORE_BYTES):
        ray.data.DataContext.get_current().enable_progress_bars = False
        list(run("warm"))
        yield run


SYSTEMS: Final[dict[str, Callable[[str], AbstractContextManager[Callable[[str], Rows]]]]] = {
    "ray_data": ray_data,
    "s3fs_pool": s3fs_pool,
}


def main(system: str, bucket: str, prefix: str, output: str) -> None:
    """Measure one round and print the result."""
    with SYSTEMS[system](bucket) as run:
        began, count = time.perf_counter(), 0
        with open(output, "w") as file:
            for row in run(prefix):
                file.write(f"{row}\n")
                count += 1
        wall = time.perf_counter() - began
    print(json.dumps({"wall_s": wall, "rows": count}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
