"""What `parallelrun up` costs on a machine while nobody submits anything: CPU, memory, and how often processes wake.

Measured once it has been idle for a minute. Memory is the sum of all proportional shares (Pss), and needs root,
as services hide theirs: without it, it is 0.
`calibration` is the CPU time, in seconds, of the import line of the benchmark `cold`.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import psutil

from benchmarks import Size, cold
from parallelrun.background.state import BackgroundCluster

_SETTLE_S = {"tiny": 0.0, "quick": 60.0, "full": 60.0}
_SECONDS = {"tiny": 1.0, "quick": 60.0, "full": 300.0}


def main(size: Size) -> dict[str, object]:
    """Measure; returns what the last line says."""
    cold.compile_packages()
    with _cluster() as owner:
        time.sleep(_SETTLE_S[size])
        processes = [owner, *owner.children(recursive=True)]
        before, began = {each.pid: _times(each.pid) for each in processes}, time.perf_counter()
        time.sleep(_SECONDS[size])
        passed_s = time.perf_counter() - began
        cpu_percent = wakes_per_s = pss_mb = 0.0
        for pid, (cpu_s, wakes) in before.items():
            cpu_s_after, wakes_after = _times(pid)
            own_percent, own_pss_mb = 100 * (cpu_s_after - cpu_s) / passed_s, _pss_mb(pid)
            print(f"  {_name(pid):48} {own_percent:6.3f} % of a core {own_pss_mb:6.1f} MB", flush=True)
            cpu_percent += own_percent
            wakes_per_s += (wakes_after - wakes) / passed_s
            pss_mb += own_pss_mb
    return {
        "cpu_percent": f"{cpu_percent:.2f}",
        "pss_mb": f"{pss_mb:.0f}",
        "processes": len(before),
        "wakes_per_s": f"{wakes_per_s:.1f}",
        "seconds": f"{passed_s:.0f}",
        "calibration": f"{cold.import_line()['cpu_s']:.2f}",
    }


@contextmanager
def _cluster() -> Iterator[psutil.Process]:
    """A cluster in the background beside whichever else this user has; the process that owns it."""
    command = str(Path(sys.executable).parent / "parallelrun")
    with tempfile.TemporaryDirectory() as home:
        environment = {name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        environment["XDG_STATE_HOME"] = f"{home}/state"
        up = [command, "up", "--root", f"{home}/cluster", "--port", "0"]
        subprocess.run(up, check=True, env=environment, stdout=subprocess.DEVNULL)
        try:
            (file,) = Path(home, "state").rglob("cluster.json")
            yield psutil.Process(msgspec.json.decode(file.read_bytes(), type=BackgroundCluster).pid)
        finally:
            subprocess.run([command, "down"], check=True, env=environment, stdout=subprocess.DEVNULL)


def _times(pid: int) -> tuple[float, int]:
    """CPU seconds of all threads, to the nanosecond, and how often they have given up the CPU by themselves."""
    nanoseconds = wakes = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        nanoseconds += int((task / "schedstat").read_text().split()[0])
        status = (task / "status").read_text()
        wakes += int(status.partition("\nvoluntary_ctxt_switches:")[2].split()[0])
    return nanoseconds / 1e9, wakes


def _pss_mb(pid: int) -> float:
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except PermissionError:
        return 0.0
    return int(text.partition("\nPss:")[2].split()[0]) * 1024 / 1e6


def _name(pid: int) -> str:
    words = psutil.Process(pid).cmdline()
    return next((word for word in words if word.endswith((".main", "_process"))), Path(words[0]).name)
