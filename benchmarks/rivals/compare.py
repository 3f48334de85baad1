"""Runs a rival in its own environment, from ours."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Final

import psutil

from benchmarks.measure import Figures
from parallelrun.embedded.redis_server import find_binary

_ROOT: Final = Path(__file__).resolve().parents[2]
ENVIRONMENT: Final = _ROOT / ".environments" / "rivals"
_RUN_S = 300.0
SURROUNDINGS: Final = {
    "PYTHONPATH": str(_ROOT),
    "PYTHONWARNINGS": "ignore",
    "OMP_NUM_THREADS": "1",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_DISABLE_IMPORT_WARNING": "1",
}


def available() -> bool:
    """Whether the rivals can be measured here; if not, prints how to install them."""
    if (ENVIRONMENT / "ready").exists():
        return True
    print("  Ray, Dask, Celery and joblib are left out; `make bench-rivals` builds their environment", flush=True)
    return False


def measure(system: str, what: str, folder: Path, files: int, *, python: Path | None = None) -> Figures:
    """One round of one rival: its wall clock and CPU, that of all its processes and of its Redis.

    Args:
        system: a module in this folder.
        what: of `work.WORKS`.
        python: another one than that of the rivals' environment.

    Raises:
        RuntimeError: it didn't finish, or not with all rows.
    """
    with tempfile.TemporaryDirectory(prefix="parallelrun-bench-") as scratch:
        command = [
            str(python or ENVIRONMENT / "bin" / "python"), "-m", "benchmarks.rivals.runner",
            system, what, str(folder), str(files), scratch, str(find_binary()),
        ]  # fmt: skip
        process = subprocess.Popen(
            command, cwd=_ROOT, env={**os.environ, **SURROUNDINGS}, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        try:
            out, complaints = process.communicate(timeout=_RUN_S)
        except subprocess.TimeoutExpired as error:
            for each in psutil.Process(process.pid).children(recursive=True):
                each.kill()
            process.kill()
            raise RuntimeError(f"{system}: not done after {_RUN_S:.0f} s") from error
    found = json.loads(out.splitlines()[-1]) if out and not process.returncode else {}
    if found.get("rows") != files or found["missing"]:
        raise RuntimeError(f"{system}: {found}\n{complaints[-2000:]}")
    return {"wall_s": found["wall_s"], "cpu_s": found["cpu_s"]}
