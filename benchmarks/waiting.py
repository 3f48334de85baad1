"""A function that waits for a service: many mini-batches in flight in each worker, beside a loop written by hand.

The service answers after 50 ms. The loop is one asyncio program for each worker, with as many calls in flight as the
worker has, over the same files and with the same client. Throughput is what the service counts, from the first call
that begins to the last: starting a job or an interpreter is in neither. `ratio_whole` has all of it: a job from its
submission to its end, a loop from its start to its rows.
`ratio_to_ray` compares what users get who choose no number: `mini_batches_in_flight: auto`, and Ray Data's asynchronous
actors as they are. `ratio_to_ray_same_number` gives both 32; as the service answers after 50 ms, nobody makes more than
1,280 calls in a second then, and on an idle machine all come near that. `ratio_to_ray_whole` is the time of a whole job
for that, Ray's session started each time.

`batching`: an engine of which a step takes as long for 64 requests as for one, beside one mini-batch at a time.
`rate_used`, `rate_peak`: the shares of a limit that four workers on two nodes use, in the sliding window of a minute
with the fewest calls after the first minute, and in that with the most (at quick, windows of ten seconds).
`paid_twice`: calls made again though their `remember` had returned, while workers, agents, leaders and the service are
killed; `twice_unanswered`: those made again because it had not.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from benchmarks import Size, data
from benchmarks.jobs import Jobs
from benchmarks.measure import Comparison, Figures, Spread
from benchmarks.rivals import compare
from benchmarks.waits import rate, scripts
from benchmarks.waits.service import Service
from tests.chaos import waiting

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_IN_FLIGHT: Final = 32
_BATCHING: Final = 64
_WORKERS: Final = 2
_RAYS_IN_FLIGHT: Final = {"RAY_DATA_DEFAULT_ASYNC_ROW_UDF_MAX_CONCURRENCY": str(_IN_FLIGHT)}
_ROOT: Final = Path(__file__).parents[1]


def main(size: Size) -> dict[str, object]:
    """Measure; returns what the last line says."""
    per_minute, limited, window_s = {"tiny": (1200, 60, 1.0), "quick": (3000, 1250, 10.0), "full": (3000, 9150, 60.0)}[
        size
    ]
    figures, batching = _throughput(size), _batching(size)
    with tempfile.TemporaryDirectory() as scratch:
        kept = rate.measure(Path(scratch), per_minute=per_minute, calls=limited, window_s=window_s)
    seeds, mini_batches = {"tiny": (1, 60), "quick": (1, 150), "full": (5, 500)}[size]
    killed = [waiting.kills(seed=seed, mini_batches=mini_batches) for seed in range(1, seeds + 1)]
    return {
        **figures,
        "rate_used": f"{kept.used:.3f}",
        "rate_peak": f"{kept.peak:.3f}",
        "refused": kept.refused,
        "kills": sum(each.faults["kills"] for each in killed),
        "twice_unanswered": sum(each.twice_unanswered for each in killed),
        "paid_twice": sum(each.paid_twice for each in killed),
        **batching,
        "rows": "exact" if all(each.finding.is_clean for each in killed) else "WRONG",
    }


def _throughput(size: Size) -> dict[str, object]:
    files, rounds, rays_rounds = {"tiny": (200, 1, 0), "quick": (2000, 3, 1), "full": (20_000, 5, 5)}[size]
    folder = data.files(files)
    paths = sorted(map(str, folder.iterdir()))
    with tempfile.TemporaryDirectory() as name, Service(Path(name)) as service, Jobs(scripts.CALLS) as jobs:

        def job(in_flight: int | str = _IN_FLIGHT) -> Figures:
            done = jobs.run(
                folder, rows=files, mini_batch_size=1, mini_batches_in_flight=in_flight,
                environment_variables={"PORT": str(service.port)},
            )  # fmt: skip
            return {"per_s": service.take_calls().per_s, "wall_s": done.wall_s, "cpu_s": done.cpu_s}

        def loop() -> Figures:
            command = [sys.executable, "-m", "benchmarks.waits.loop"]
            wall_s = _programs(command, [paths[at::_WORKERS] for at in range(_WORKERS)], Path(name), service.port)
            return {"per_s": service.take_calls().per_s, "wall_s": wall_s}

        def ray(variables: Mapping[str, str] = _RAYS_IN_FLIGHT) -> Figures:
            command = [str(compare.ENVIRONMENT / "bin" / "python"), "-m", "benchmarks.waits.ray_async"]
            wall_s = _programs(command, [paths], Path(name), service.port, variables)
            return {"per_s": service.take_calls().per_s, "wall_s": wall_s}

        systems = {"in flight": job, "loop": loop}
        rays: dict[str, Callable[[], Figures]] = {
            "in flight": job,
            "ray": ray,
            "auto": lambda: job("auto"),
            "ray as it is": lambda: ray({}),
        }
        job()  # the first one starts the workers
        service.take_calls()
        comparison = Comparison(systems).run(rounds)
        print(comparison.table())
        beside_ray = Comparison(rays).run(rays_rounds) if rays_rounds and compare.available() else None
        if beside_ray:
            print(beside_ray.table())

    def ratio(system: str, to: str, figure: str) -> str:
        return f"{beside_ray.ratio(system, to, figure).median:.2f}" if beside_ray else "-"

    return {
        **comparison.ratio("in flight", "loop", "per_s").fields("ratio_to_loop"),
        **comparison.ratio("loop", "in flight", "wall_s").fields("ratio_whole"),
        "ratio_to_ray": ratio("auto", "ray as it is", "per_s"),
        "ratio_to_ray_same_number": ratio("in flight", "ray", "per_s"),
        "ratio_to_ray_whole": ratio("ray", "in flight", "wall_s"),
        "calls": files,
        "rounds": rounds,
    }


def _batching(size: Size) -> dict[str, str]:
    """An engine with continuous batching beside the ordinary contract, by mini-batches per second of a whole job."""
    few, many, rounds = {"tiny": (8, 128, 1), "quick": (40, 1500, 2), "full": (200, 10_000, 5)}[size]
    with Jobs(scripts.ENGINE) as jobs:

        def job(in_flight: int, files: int) -> Figures:
            done = jobs.run(data.files(files), rows=files, mini_batch_size=1, mini_batches_in_flight=in_flight)
            return {"wall_s": done.wall_s, "per_s": files / done.wall_s}

        job(_BATCHING, few)
        systems = {"batching": lambda: job(_BATCHING, many), "one at a time": lambda: job(1, few)}
        comparison = Comparison(systems).run(rounds)
    print(comparison.table())
    return Spread.of(
        ours / one
        for ours, one in zip(
            comparison.values("batching", "per_s"), comparison.values("one at a time", "per_s"), strict=True
        )
    ).fields("batching", digits=1)


def _programs(
    command: list[str], parts: list[list[str]], scratch: Path, port: int, variables: Mapping[str, str] | None = None
) -> float:
    """Run a program for each part of the paths; returns the seconds until the last has ended.

    Args:
        variables: what the programs find in their environment, beside ours.

    Raises:
        RuntimeError: one has failed, or rows are missing.
    """
    began = time.perf_counter()
    outputs, programs = [], []
    for number, paths in enumerate(parts):
        todo, output = scratch / f"{number}.txt", scratch / f"{number}.out"
        todo.write_text("\n".join(paths))
        arguments = [str(port), str(todo), str(_IN_FLIGHT), str(output)]
        environment = {**os.environ, **compare.SURROUNDINGS, **(variables or {})}
        programs.append(subprocess.Popen([*command, *arguments], cwd=_ROOT, env=environment))
        outputs.append(output)
    codes = [program.wait() for program in programs]
    if any(codes):
        raise RuntimeError(f"{command} has failed")
    wall_s = time.perf_counter() - began
    rows = {row for output in outputs for row in output.read_text().splitlines()}
    expected = {os.path.basename(path) for paths in parts for path in paths}
    if rows != expected:
        raise RuntimeError(f"{command} has {len(rows):,} rows, not {len(expected):,}")
    return wall_s
