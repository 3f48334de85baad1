"""`python -m benchmarks.rivals.runner SYSTEM WORK FOLDER FILES SCRATCH REDIS_SERVER`: one round of one rival.

Runs in the rivals' environment. The clock and the CPU account begin when the workers are warm, and end when the rows of
the last mini-batch are in one output file. The last line is JSON.
"""

from __future__ import annotations

import json
import os
import sys
import time
from importlib import import_module
from pathlib import Path

from benchmarks.measure import cpu_seconds
from benchmarks.rivals import work


def main(system: str, what: str, folder: str, files: str, *surroundings: str) -> None:
    """Measure one round and print the result."""
    scratch, redis_server = surroundings
    todo = work.mini_batches_of(Path(folder), int(files), work.EACH_OF.get(what, work.EACH))
    output = Path(scratch) / "output.txt"
    rival = import_module(f"benchmarks.rivals.{system}")
    with rival.ready(work.WORKS[what], Path(scratch), redis_server) as run:
        if what == "images":  # whoever keeps their processes has loaded the network
            list(run([todo[0][:1]] * 4 * work.WORKERS))
        cpu, began = cpu_seconds([os.getpid()]), time.perf_counter()
        with output.open("w") as file:
            file.writelines(work.lines(run(todo)))
        wall = time.perf_counter() - began
        used = cpu_seconds([os.getpid()]) - cpu
    with output.open() as rows:
        found = {row.partition(" ")[0].rstrip("\n") for row in rows}
    missing = sum(path not in found for paths in todo for path in paths)
    print(json.dumps({"wall_s": wall, "cpu_s": used, "rows": len(found), "missing": missing}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
