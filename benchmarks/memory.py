"""What the master and Redis need while twenty folders of very many files each are listed and run over.

The folders are links to the same one, so that every path is really listed but few inodes are needed. A small job comes
first: memory must not depend on the number of files. run() does nothing; 100 files in each mini-batch.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from pathlib import Path

import psutil

from benchmarks import Size, data
from benchmarks.jobs import Jobs
from benchmarks.measure import Comparison, Figures, peak_mb

_FILES_EACH = 100
_SCRIPT = "def run(mini_batch):\n    return [1] * len(mini_batch)\n"


class Peaks:
    """Watches processes, and what comes and goes below them: the most that any one of each name's had. `with` it."""

    def __init__(self, pids: dict[str, int]) -> None:
        self.mb = dict.fromkeys(pids, 0.0)
        self._pids = pids
        self._enough = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> Peaks:
        for pid in self._pids.values():
            for each in _family(pid):
                with suppress(OSError):  # it has just ended
                    Path(f"/proc/{each}/clear_refs").write_text("5")  # resets the peak
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._enough.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._enough.wait(0.1):
            for name, pid in self._pids.items():
                self.mb[name] = max([self.mb[name], *map(peak_mb, _family(pid))])


def _family(pid: int) -> list[int]:
    try:
        return [pid, *(child.pid for child in psutil.Process(pid).children(recursive=True))]
    except psutil.NoSuchProcess:
        return []


def measure(jobs: Jobs, folder: Path, files: int) -> Figures:
    """One job: peaks of memory, and how long it took."""
    with Peaks(jobs.cluster.pids()) as peaks:
        done = jobs.run(folder, mini_batch_size=_FILES_EACH)
    if done.result.progress.items_done != files:
        raise RuntimeError(f"{done.result.progress.items_done:,} files done, not {files:,}")
    return {f"{name}_mb": mb for name, mb in peaks.mb.items()} | {"job_s": done.wall_s}


def main(size: Size) -> dict[str, object]:
    """Measure; returns what the last line says."""
    folders, files = {"tiny": (2, 1_000), "quick": (5, 200_000), "full": (20, 1_000_000)}[size]
    one = data.files(files)
    many = data.again(one, folders)
    with Jobs(_SCRIPT) as jobs:
        measure(jobs, one, files)  # warms everything up
        found = Comparison(
            {
                "1 folder": lambda: measure(jobs, one, files),
                f"{folders} folders": lambda: measure(jobs, many, folders * files),
            }
        ).run(1)
    print(found.table())
    last: dict[str, object] = {"files": folders * files}
    for part in ("master", "redis", "node1", "concatenator"):
        few, all_ = found.spread("1 folder", f"{part}_mb"), found.spread(f"{folders} folders", f"{part}_mb")
        last |= {f"{part}_mb": f"{all_.median:.0f}", f"{part}_mb_one_folder": f"{few.median:.0f}"}
    return last | {"job_s": f"{found.spread(f'{folders} folders', 'job_s').median:.1f}"}
