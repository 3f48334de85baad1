"""Real work on objects of 64 KB, sha256 five times over each, 10 in each mini-batch, 2 workers.

Round by round in turn: the loop of `loop.py`, and the same by way of files, as the job's script has them; our job over
the prefix with an empty cache on the node; the same job again; the same files on the disk; at full size also Ray Data,
and a Pool over s3fs. The clock of a job runs from the
beginning of its scheduling to the last commit, so it includes the listing, as that of the others does; workers of the
job start meanwhile. `second_run_to_local` compares from the first run() on.
"""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from benchmarks import Size
from benchmarks.jobs import Jobs, Run
from benchmarks.measure import Comparison, Figures, Spread
from benchmarks.rivals.compare import ENVIRONMENT, SURROUNDINGS, available
from benchmarks.rivals.work import EACH, WORKERS
from benchmarks.store import server
from parallelrun_core.folder.decisions import read_decisions
from tests.object_servers import BUCKET

_BYTES: Final = 65_536
_SCRIPT: Final = """\
from hashlib import sha256

def hash_file(path):
    with open(path, "rb") as file:
        data = file.read()
    for _ in range(5):
        digest = sha256(data).hexdigest()
    return f"{path} {digest}"

def run(mini_batch):
    return [hash_file(path) for path in mini_batch]
"""


def run_loop(prefix: str, files: int, folder: Path | None = None) -> Figures:
    """One round of the loop; with a folder, by way of files there."""
    with tempfile.NamedTemporaryFile() as output:
        command = [sys.executable, "-m", "benchmarks.store.loop", BUCKET, prefix, output.name]
        if folder is not None:
            command.append(str(folder))
        done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=600)
    figures = json.loads(done.stdout.splitlines()[-1])
    if figures.pop("rows") != files:
        raise RuntimeError(f"the loop has other rows than {files:,}")
    return dict(figures)


def run_rival(system: str, prefix: str, files: int) -> Figures:
    """One round of another system, in its own environment."""
    with tempfile.NamedTemporaryFile() as output:
        command = [str(ENVIRONMENT / "bin" / "python"), "-m", "benchmarks.rivals.objects"]
        done = subprocess.run(
            [*command, system, BUCKET, prefix, output.name],
            check=True, capture_output=True, text=True, timeout=900, env={**os.environ, **SURROUNDINGS},
        )  # fmt: skip
    figures = json.loads(done.stdout.splitlines()[-1])
    if figures.pop("rows") != files:
        raise RuntimeError(f"{system} has other rows than {files:,}")
    return dict(figures)


def figures_of(done: Run) -> Figures:
    """Of a job that has completed."""
    outcomes = list(read_decisions(done.folder.path))
    last = max(log.stat().st_mtime for log in done.folder.path.glob("decisions.*"))  # the last commit, made durable
    parts = {f"{name}_cpu_s": seconds for name, seconds in done.cpu_by.items()}
    return {
        "wall_s": last - (done.result.started or 0.0),
        "run_s": last - min(outcome.started for outcome in outcomes),
        "cpu_s": done.cpu_s,
        "load_s": sum(outcome.load_s for outcome in outcomes),
        "job_s": done.wall_s,
        **parts,
    }


class Rounds:
    """A new cluster with an empty cache for each round; its three jobs are called in turn.

    For minutes after many files were deleted, ext4 looks at each of their inodes before it creates another one in the
    same part of the disk (`recently_deleted`), which takes ten times as long as creating it. So no cache is removed
    before all rounds are over, and each is in a part of its own, as a node's cache is that has removed nothing.
    """

    def __init__(self, prefix: str, folder: Path, files: int) -> None:
        self._prefix, self._folder, self._files = prefix, folder, files
        self._caches = tempfile.TemporaryDirectory(prefix="parallelrun-bench-caches-")
        subprocess.run(["chattr", "+T", self._caches.name], check=False, capture_output=True)  # ext4's folders only
        self._jobs: Jobs | None = None

    def first(self) -> Figures:
        """Nothing is on the node."""
        self._end_round()
        self._jobs = Jobs(_SCRIPT, processes=WORKERS)
        with server.environment({"XDG_CACHE_HOME": str(self._new_folder())}):
            self._jobs.__enter__()
        self._run(f"s3://{BUCKET}/warm", EACH)
        return figures_of(self._run(f"s3://{BUCKET}/{self._prefix}", self._files))

    def loop(self) -> Figures:
        """The loop by way of files, which stay as long as those of the caches."""
        folder = self._new_folder()
        folder.mkdir()
        return run_loop(self._prefix, self._files, folder)

    def second(self) -> Figures:
        """All of it is on the node."""
        return figures_of(self._run(f"s3://{BUCKET}/{self._prefix}", self._files))

    def local(self) -> Figures:
        """The same files on the disk, which are in the page cache, as are those of the node's cache."""
        for path in self._folder.iterdir():
            path.read_bytes()
        return figures_of(self._run(str(self._folder), self._files))

    def close(self) -> None:
        """End the last round."""
        self._end_round()
        self._caches.cleanup()

    def _new_folder(self) -> Path:
        return Path(self._caches.name, secrets.token_hex(4))

    def _end_round(self) -> None:
        if self._jobs is not None:
            self._jobs.__exit__()
            self._jobs = None

    def _run(self, path: str, files: int) -> Run:
        assert self._jobs is not None  # noqa: S101 - a round begins with `first`
        return self._jobs.run(Path(path), inputs={"data": {"path": path}}, rows=files, mini_batch_size=EACH)


def main(size: Size) -> dict[str, object]:
    """Measure; returns what the last line says."""
    if not server.available():
        return {}
    rounds, files = {"tiny": (1, 100), "quick": (3, 4_000), "full": (5, 20_000)}[size]
    folder = server.same_files(files, _BYTES)
    with server.store():
        server.upload(server.same_files(EACH, _BYTES), "warm")
        server.upload(folder, "in")
        ours = Rounds("in", folder, files)
        systems: dict[str, Callable[[], Figures]] = {
            "loop": server.with_its_cpu(lambda: run_loop("in", files)),
            "loop by files": server.with_its_cpu(ours.loop),
            "first run": server.with_its_cpu(ours.first),
            "second run": ours.second,
            "local files": ours.local,
        }
        rivals = (
            {"ratio_to_ray_data": "ray_data", "ratio_to_s3fs": "s3fs_pool"} if size == "full" and available() else {}
        )
        systems |= {system: partial(run_rival, system, "in", files) for system in rivals.values()}
        try:
            compared = Comparison(systems).run(rounds)
        finally:
            ours.close()
    print(compared.table())
    last = _ratio(compared, "first run", "loop").fields("wall_to_best")
    last |= _ratio(compared, "first run", "loop by files").fields("wall_to_best_by_files")
    last |= {"first_wall_s": f"{compared.spread('first run', 'wall_s').median:.2f}", "objects": str(files)}
    again = compared.ratio("second run", "local files", "run_s")
    for name, system in rivals.items():
        last |= _ratio(compared, system, "first run").fields(name)
    return {**last, **again.fields("second_run_to_local")}


def _ratio(compared: Comparison, system: str, to: str) -> Spread:
    return compared.ratio(system, to, "wall_s")


if __name__ == "__main__":
    print(main("quick"))
