"""The best loop that we could write by hand: `python -m benchmarks.store.loop BUCKET PREFIX OUTPUT [FOLDER]`.

Two processes, each with half of the keys. In each, threads of obstore fetch what comes next while its main thread
hashes; nothing is written to the disk but the rows. With a folder, each object becomes a file there, which stays, and
what is hashed is that file: the loop of somebody whose function takes paths. The clock begins when both are warm, with
the listing. The last line is JSON.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from hashlib import sha256
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any, Final

import obstore
import psutil
from obstore.store import S3Store

PROCESSES: Final = 2
_THREADS: Final = 8
_AHEAD: Final = 32
TIMES: Final = 5


def hash_content(content: Any) -> str:
    """What all systems do with an object."""
    digest = ""
    for _ in range(TIMES):
        digest = sha256(content).hexdigest()
    return digest


def _bucket(name: str) -> S3Store:
    return S3Store(name, client_options={"allow_http": True})


def hash_file(path: str) -> str:
    """The same by way of a file."""
    with open(path, "rb") as file:
        return hash_content(file.read())


def _work(bucket_name: str, folder: str, pipe: Connection) -> None:
    bucket, hashed = _bucket(bucket_name), hash_file if folder else hash_content
    with ThreadPoolExecutor(_THREADS) as pool:
        list(pool.map(lambda _: time.sleep(0.01), range(_THREADS)))  # all of its threads are there now
        pipe.send(None)

        def fetch(key: str) -> Any:
            content = obstore.get(bucket, key).bytes()
            if not folder:
                return content
            path = os.path.join(folder, os.path.basename(key))
            with open(path, "wb", buffering=0) as file:
                file.write(content)
            return path

        keys, rows = pipe.recv(), list[str]()
        coming: deque[tuple[str, Future[Any]]] = deque()
        for key in keys:
            coming.append((key, pool.submit(fetch, key)))
            if len(coming) > _AHEAD:
                first, future = coming.popleft()
                rows.append(f"{first} {hashed(future.result())}")
        rows += [f"{key} {hashed(future.result())}" for key, future in coming]
        pipe.send(rows)


def main(bucket: str, prefix: str, output: str, folder: str = "") -> None:
    """Measure one round and print the result."""
    context = get_context("spawn")
    pipes, processes = [], []
    for _ in range(PROCESSES):
        ours, theirs = context.Pipe()
        processes.append(context.Process(target=_work, args=(bucket, folder, theirs), daemon=True))
        processes[-1].start()
        ours.recv()
        pipes.append(ours)
    began = time.perf_counter()
    keys = [meta["path"] for page in obstore.list(_bucket(bucket), prefix, chunk_size=1000) for meta in page]
    for number, pipe in enumerate(pipes):
        pipe.send(keys[number::PROCESSES])
    rows = [row for pipe in pipes for row in pipe.recv()]
    with open(output, "w") as file:
        file.writelines(f"{row}\n" for row in rows)
    wall = time.perf_counter() - began
    used = sum(sum(psutil.Process(process.pid).cpu_times()[:2]) for process in processes if process.is_alive())
    for process in processes:
        process.join()
    print(json.dumps({"wall_s": wall, "cpu_s": used, "rows": len(rows)}))


if __name__ == "__main__":
    main(*sys.argv[1:])
