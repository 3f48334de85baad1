"""Other systems, measured by a harness of their own, each in its own virtual environment.

The harness is a folder `shared/peers` beside this repository, or wherever `PARALLELRUN_PEERS` says; without it the
benchmarks leave the other systems out. It makes the environments itself, which takes minutes the first time.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

_RUN_S = 300.0
_SET_UP_S = 1200.0


def available() -> bool:
    """Whether the other systems can be measured here."""
    return (_harness() / "run.py").exists()


def measure(environment: str, system: str, *words: str) -> dict[str, Any]:
    """One run of one system: what the harness says of it.

    Raises:
        RuntimeError: it didn't get to its end.
    """
    python = _environments() / "base" / "bin" / "python"
    for name in ("base", environment):
        if not (_environments() / name / "versions.txt").exists():
            print(f"  setting up {name}", flush=True)
            subprocess.run([_harness() / "setup.sh", name], check=True, timeout=_SET_UP_S, stdout=sys.stderr)
    done = subprocess.run(
        [python, _harness() / "run.py", "single", environment, system, "--", *words],
        capture_output=True, check=False, text=True, timeout=_RUN_S,
    )  # fmt: skip
    found: dict[str, Any] = json.loads(done.stdout or "{}")
    if done.returncode or found.get("failed") or found.get("errors") or "wall_s" not in found:
        raise RuntimeError(f"{system}: {done.stderr[-2000:]} {found}")
    return found


def _harness() -> Path:
    beside = Path(__file__).resolve().parents[2] / "shared" / "peers"
    return Path(os.environ.get("PARALLELRUN_PEERS", beside))


def _environments() -> Path:
    return Path(os.environ.get("PEERS_ROOT", Path(tempfile.gettempdir()) / "peers")) / "venv"
