"""A trivial job of four files from nothing, by `parallelrun run`, beside one process that imports what users import.

Most of such a run is imports: of the command, Redis' client and five services. Both sides find compiled modules, also
where the environment says that Python writes none, because what users have installed is compiled. CPU is that of all
processes that the command has started, Redis included. `calibration` is the CPU time, in seconds, of the import line:
it says how fast this machine is.
"""

from __future__ import annotations

import compileall
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from itertools import count
from pathlib import Path

import parallelrun
import parallelrun_agent
import parallelrun_api
import parallelrun_concatenator
import parallelrun_core
import parallelrun_master
import parallelrun_worker
from benchmarks import Size, data
from benchmarks.measure import Comparison, Figures
from benchmarks.noop import SCRIPT

IMPORTS = "import fastapi, pydantic, redis, pandas, pyarrow"
_FILES = 4
_JOB = "code: {code}\nentry_script: entry.py\ninputs: {{data: {data}}}\nmini_batch_size: 1\n"
_WITHIN_S = 120.0
_PACKAGES = (
    parallelrun, parallelrun_agent, parallelrun_api, parallelrun_concatenator, parallelrun_core, parallelrun_master,
    parallelrun_worker,
)  # fmt: skip


def compile_packages() -> None:
    """Compile what services import, as an installation does."""
    for package in _PACKAGES:
        compileall.compile_dir(str(Path(str(package.__file__)).parent), quiet=1)


def write_job(home: Path, folder: Path) -> Path:
    """Write a job whose run() does nothing with the files of a folder, one in each mini-batch; returns its file."""
    code = home / "code"
    code.mkdir(exist_ok=True)
    (code / "entry.py").write_text(SCRIPT)
    job = home / "job.yml"
    job.write_text(_JOB.format(data=folder, code=code))
    return job


def from_nothing(job: Path, out: Path) -> Figures:
    """The whole command: interpreter, Redis, services, the job, and the end of them all."""
    return measure([str(Path(sys.executable).parent / "parallelrun"), "run", str(job), "--output", str(out)])


def import_line() -> Figures:
    """The imports in one process."""
    return measure([sys.executable, "-c", IMPORTS])


def measure(command: Sequence[str]) -> Figures:
    """The time of a command, and the CPU of all processes that it has started."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    before, began = cpu_of_ended_children(), time.perf_counter()
    subprocess.run(command, check=True, timeout=_WITHIN_S, stdout=subprocess.DEVNULL, env=environment)
    return {"wall_s": time.perf_counter() - began, "cpu_s": cpu_of_ended_children() - before}


def cpu_of_ended_children() -> float:
    """CPU seconds of all processes that this one has started, directly or not, and that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main(size: Size) -> dict[str, object]:
    """Measure; returns what the last line says."""
    rounds = {"tiny": 1, "quick": 3, "full": 9}[size]
    compile_packages()
    with tempfile.TemporaryDirectory() as temporary:
        home = Path(temporary)
        job, numbers = write_job(home, data.files(_FILES)), count()
        systems = {
            "from nothing": lambda: from_nothing(job, home / f"out-{next(numbers)}"),
            "import line": import_line,
        }
        for run in systems.values():
            run()  # files are in the page cache from now on, for both
        found = Comparison(systems).run(rounds)
    print(found.table())
    return {
        "rounds": rounds,
        **found.ratio("from nothing", "import line", "wall_s").fields("wall"),
        **found.ratio("from nothing", "import line", "cpu_s").fields("cpu"),
        "wall_s": f"{found.spread('from nothing', 'wall_s').median:.2f}",
        "cpu_s": f"{found.spread('from nothing', 'cpu_s').median:.2f}",
        "calibration": f"{found.spread('import line', 'cpu_s').median:.2f}",
    }
