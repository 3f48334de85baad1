"""Jobs of short items with several sizes of mini-batches, and with `mini_batch_size: auto`, which has to find out.

An item takes 2 ms, and each call of run() 20 ms more, as if it opened a connection; then 1 ms and 0.2 s, as if it asked
a service. All of it is slept, on two workers. The ratios are of the whole job's wall time, to the best of the given
sizes in the same round; `long_calls_more` is by how many such calls `auto` took longer than the best.
"""

from __future__ import annotations

from benchmarks import Size, data
from benchmarks.jobs import Jobs
from benchmarks.measure import Comparison, Figures, Spread

_SCRIPT = """
import os, time

def run(mini_batch):
    time.sleep(float(os.environ["CALL_S"]) + float(os.environ["ITEM_S"]) * len(mini_batch))
    return mini_batch
"""
_SIZES = (1, 10, 100, 1000)
_SHORT, _LONG = (0.020, 0.002), (0.2, 0.001)
"""Seconds of a call and of an item."""


def main(size: Size) -> dict[str, object]:
    """Measure; returns what the last line says."""
    files, rounds = {"tiny": (100, 1), "quick": (4000, 3), "full": (20_000, 3)}[size]
    with Jobs(_SCRIPT) as jobs:
        short = _compare(jobs, files, rounds, _SHORT, _SIZES)
        long = _compare(jobs, files, rounds, _LONG, (files // 2, files // 4))
    last: dict[str, object] = {"rounds": rounds, "files": files}
    for name in ("auto", "1", "10"):
        ratios = Spread.of(wall / least for wall, least in zip(short[name], short["best"], strict=True))
        last |= ratios.fields(f"{'size_' if name != 'auto' else ''}{name}_beside_best")
    pairs = list(zip(long["auto"], long["best"], strict=True))
    last |= Spread.of(wall / least for wall, least in pairs).fields("long_calls_beside_best")
    return last | Spread.of((wall - least) / _LONG[0] for wall, least in pairs).fields("long_calls_more", 1)


def _compare(
    jobs: Jobs, files: int, rounds: int, seconds: tuple[float, float], sizes: tuple[int, ...]
) -> dict[str, list[float]]:
    """Return the wall times of each size, of `auto`, and of the `best` size, round by round."""
    folder = data.files(files)
    times = dict(zip(("CALL_S", "ITEM_S"), map(str, seconds), strict=True))

    def job(batch_size: int | str) -> Figures:
        done = jobs.run(folder, rows=files, mini_batch_size=batch_size, environment_variables=times)
        return {"wall_s": done.wall_s, "mini_batches": done.result.progress.done}

    job(sizes[-1])  # the first one starts the workers
    systems = {str(each): (lambda each=each: job(each)) for each in (*sizes, "auto")}
    compared = Comparison(systems).run(rounds)
    print(compared.table())
    walls = {name: compared.values(name, "wall_s") for name in systems}
    best = [min(walls[str(each)][number] for each in sizes) for number in range(rounds)]
    return {**walls, "best": best}
