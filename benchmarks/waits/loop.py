"""`python -m benchmarks.waits.loop PORT PATHS IN_FLIGHT OUTPUT`: what one writes by hand instead, for one process.

The same number of calls in flight as a worker has; the rows are written at the end, in the order of the paths.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.waits.client import ServiceClient


async def _run(client: ServiceClient, paths: Sequence[str], in_flight: int) -> list[str]:
    rows = [""] * len(paths)
    places = iter(range(len(paths)))

    async def work() -> None:
        for place in places:
            rows[place] = await client.call(os.path.basename(paths[place]))

    await asyncio.gather(*(work() for _ in range(in_flight)))
    return rows


if __name__ == "__main__":
    _port, _paths, _in_flight, _output = sys.argv[1:]
    _todo = Path(_paths).read_text().splitlines()
    _rows = asyncio.run(_run(ServiceClient(int(_port)), _todo, int(_in_flight)))
    Path(_output).write_text("".join(row + "\n" for row in _rows))
