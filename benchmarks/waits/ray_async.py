"""`python -m benchmarks.waits.ray_async PORT PATHS IN_FLIGHT OUTPUT`: the same by Ray Data's asynchronous actors.

Runs in the rivals' environment. An actor for each worker, with as many calls in flight as the worker has, which Ray
Data bounds by a variable of the environment.
"""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path
from typing import Any

import ray.data

from benchmarks.rivals.ray_session import session
from benchmarks.rivals.work import WORKERS
from benchmarks.waits.client import ServiceClient

_STORE_BYTES = 1 << 30
_BLOCKS_EACH = 8


class Caller:
    """What an actor keeps between rows."""

    def __init__(self, port: int) -> None:
        self._client = ServiceClient(port)

    async def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        return {"item": await self._client.call(os.path.basename(row["item"]))}


def _main(port: int, paths: list[str], output: Path) -> None:
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    with session(_STORE_BYTES):
        ray.data.DataContext.get_current().enable_progress_bars = False
        items = ray.data.from_items(paths, override_num_blocks=_BLOCKS_EACH * WORKERS)
        # Half a CPU each: with a whole one there would be none left for the tasks that make the blocks.
        actors = ray.data.ActorPoolStrategy(size=WORKERS)
        rows = items.map(Caller, fn_constructor_args=(port,), num_cpus=0.5, compute=actors)
        output.write_text("".join(row["item"] + "\n" for row in rows.iter_rows()))


if __name__ == "__main__":
    _main(int(sys.argv[1]), Path(sys.argv[2]).read_text().splitlines(), Path(sys.argv[4]))
