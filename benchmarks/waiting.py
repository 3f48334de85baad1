"""A function that waits for a service: many mini-batches in flight in each worker, beside a loop written by hand.

The service answers after 50 ms. The loop is one asyncio program for each worker, with as many calls in flight as the
worker has, over the same files; both do the same call. `batching` compares with the ordinary contract, one mini-batch
at a time, where the wait is all that happens. Then a limit of calls a minute is kept by all workers together:
`rate_used` is the share of it that the service counts, and `rate_peak` the most in any window of ten seconds.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
import threading
import time
from bisect import bisect_left
from pathlib import Path

from benchmarks import Size, data
from benchmarks.jobs import Jobs
from benchmarks.measure import Comparison, Figures, Spread
from parallelrun_core.limits.catalog import limit_catalog
from parallelrun_core.limits.definition import Limit

_CALL = """
import asyncio, os

async def call(path):
    reader, writer = await asyncio.open_connection("127.0.0.1", int(os.environ["PORT"]))
    try:
        writer.write(os.path.basename(path).encode() + b"\\n")
        return (await reader.readline()).decode().strip()
    finally:
        writer.close()
"""
_SCRIPT = (
    _CALL
    + """
from parallelrun.script import limit

async def run(mini_batch):
    if os.environ["LIMITED"]:
        rows = []
        for path in mini_batch:
            async with limit("service"):
                rows.append(await call(path))
        return rows
    return [await call(path) for path in mini_batch]
"""
)
_LOOP = (
    _CALL
    + """
import sys

async def main(paths, most, out):
    free = asyncio.Semaphore(most)
    async def one(path):
        async with free:
            return await call(path)
    rows = await asyncio.gather(*map(one, paths))
    with open(out, "w") as file:
        file.writelines(row + "\\n" for row in rows)

asyncio.run(main(open(sys.argv[1]).read().split("\\n"), int(sys.argv[2]), sys.argv[3]))
"""
)
_ANSWER_S = 0.05
_IN_FLIGHT = 32
_WORKERS = 2
_WINDOW_S = 10.0


class _Service:
    """A service in a thread of its own, which notes when each call begins."""

    def __init__(self) -> None:
        self.begun: list[float] = []
        self._loop = asyncio.new_event_loop()
        self._server = self._loop.run_until_complete(asyncio.start_server(self._answer, "127.0.0.1", 0, backlog=1024))
        self.port = self._server.sockets[0].getsockname()[1]
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        line = await reader.readline()
        self.begun.append(time.monotonic())
        await asyncio.sleep(_ANSWER_S)
        writer.write(line)
        writer.close()

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def peak(self, window_s: float) -> int:
        """The most calls that began within any window of so long."""
        times = sorted(self.begun)
        return max((bisect_left(times, first + window_s) - at for at, first in enumerate(times)), default=0)


def main(size: Size) -> dict[str, object]:
    """Measure; returns what the last line says."""
    files, few, rounds = {"tiny": (200, 40, 1), "quick": (6000, 200, 3), "full": (30_000, 600, 5)}[size]
    per_minute, limited = {"tiny": (1200, 60), "quick": (3000, 1500), "full": (3000, 9000)}[size]
    folder = data.files(files)
    service = _Service()
    with Jobs(_SCRIPT, processes=_WORKERS) as jobs, tempfile.TemporaryDirectory() as scratch:

        def job(in_flight: int, of: Path = folder, count: int = files) -> Figures:
            variables = {"PORT": str(service.port), "LIMITED": ""}
            done = jobs.run(
                of, rows=count, mini_batch_size=1, mini_batches_in_flight=in_flight, environment_variables=variables
            )
            return {"wall_s": done.wall_s, "per_s": count / done.wall_s}

        job(_IN_FLIGHT)  # the first one starts the workers
        systems = {
            "in flight": lambda: job(_IN_FLIGHT),
            "loop": lambda: _by_hand(folder, Path(scratch), service.port),
            "one at a time": lambda: job(1, data.files(few), few),
        }
        comparison = Comparison(systems).run(rounds)
        print(comparison.table())
        limit_catalog(jobs.cluster.layout.root).define(Limit(name="service", requests_per_minute=per_minute))
        service.begun.clear()
        jobs.run(
            data.files(limited), rows=limited, mini_batch_size=1, mini_batches_in_flight=_IN_FLIGHT,
            rate_limits=["service"], environment_variables={"PORT": str(service.port), "LIMITED": "yes"},
        )  # fmt: skip
    service.stop()
    rates = {name: comparison.values(name, "per_s") for name in systems}
    beside_loop = Spread.of(ours / loop for ours, loop in zip(rates["in flight"], rates["loop"], strict=True))
    batching = Spread.of(ours / one for ours, one in zip(rates["in flight"], rates["one at a time"], strict=True))
    lasted_s = max(service.begun) - min(service.begun)
    return {
        **beside_loop.fields("ratio_to_loop"),
        **batching.fields("batching", digits=1),
        "rate_used": round((limited - 1) / (lasted_s * per_minute / 60), 3),
        "rate_peak": round(service.peak(_WINDOW_S) / (per_minute * _WINDOW_S / 60), 3),
        "rows": "exact",
        "calls": files,
        "rounds": rounds,
    }


def _by_hand(folder: Path, scratch: Path, port: int) -> Figures:
    """The same calls by one asyncio program for each worker, each with its part of the files."""
    paths = sorted(map(str, folder.iterdir()))
    began = time.perf_counter()
    programs = []
    for number in range(_WORKERS):
        (scratch / f"{number}.txt").write_text("\n".join(paths[number::_WORKERS]))
        command = [
            sys.executable, "-c", _LOOP, str(scratch / f"{number}.txt"), str(_IN_FLIGHT), str(scratch / f"{number}.out")
        ]  # fmt: skip
        programs.append(subprocess.Popen(command, env={"PORT": str(port), "PATH": ""}))
    for program in programs:
        if program.wait():
            raise RuntimeError("the loop has failed")
    wall_s = time.perf_counter() - began
    rows = sum(len((scratch / f"{number}.out").read_text().splitlines()) for number in range(_WORKERS))
    if rows != len(paths):
        raise RuntimeError(f"the loop has {rows:,} rows, not {len(paths):,}")
    return {"wall_s": wall_s, "per_s": len(paths) / wall_s}
