"""One job of short items with several sizes of mini-batches, and with `mini_batch_size: auto`, which has to find out.

An item takes 2 ms, and each call of run() 20 ms more, as if it opened a connection. Both are slept, on two workers. The
ratios are of the whole job's wall time, to the best of the given sizes in the same round.
"""

from __future__ import annotations

from benchmarks import Size, data
from benchmarks.jobs import Jobs
from benchmarks.measure import Comparison, Figures, Spread

_SCRIPT = """
import time

def run(mini_batch):
    time.sleep(0.020 + 0.002 * len(mini_batch))
    return mini_batch
"""
_SIZES = (1, 10, 100, 1000)


def main(size: Size) -> dict[str, object]:
    """Measure; returns what the last line says."""
    files, rounds = {"tiny": (100, 1), "quick": (4000, 3), "full": (20_000, 3)}[size]
    folder = data.files(files)
    with Jobs(_SCRIPT) as jobs:

        def job(given: int | str) -> Figures:
            done = jobs.run(folder, rows=files, mini_batch_size=given)
            return {"wall_s": done.wall_s, "mini_batches": done.result.progress.done}

        job(100)  # the first one starts the workers
        systems = {str(given): (lambda given=given: job(given)) for given in (*_SIZES, "auto")}
        found = Comparison(systems).run(rounds)
    print(found.table())
    walls = {name: found.values(name, "wall_s") for name in systems}
    best = [min(walls[str(given)][number] for given in _SIZES) for number in range(rounds)]
    last: dict[str, object] = {"rounds": rounds, "files": files}
    for name in ("auto", "1", "10"):
        ratios = Spread.of(wall / least for wall, least in zip(walls[name], best, strict=True))
        last |= ratios.fields(f"{'size_' if name != 'auto' else ''}{name}_beside_best")
    return last
