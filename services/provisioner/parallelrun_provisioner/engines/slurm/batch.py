"""Everything that is sent to Slurm for one node: the arguments of sbatch, and a script. Pure.

Nothing secret is in either: everybody on the cluster can read both. A job begins with the few variables that sbatch
is started with (`commands.py`), and the script sets what else the agent needs. `--export=NONE` would do the same by a
login of the user on the node, which takes seconds on many clusters, and fails where the user's profile does. Every word
of the script is quoted, so no value of a definition can be more than a value.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from parallelrun_core.computes.kinds.slurm import LEAVES_BEFORE_S, SlurmCompute
from parallelrun_core.computes.launch import Launch

_MIB: Final = 1 << 20
# -P: a file such as `redis.py` in the current folder must not be imported.
_AGENT: Final = ("-P", "-m", "parallelrun_core.service.launch", "parallelrun_agent.main")


def mark(cluster: str, compute: str) -> str:
    """The comment by which a job is known as a node of this cluster and compute."""
    return f"parallelrun:{cluster}:{compute}"


def arguments(compute: SlurmCompute, launch: Launch, *, cluster: str, folder: Path) -> list[str]:
    """The arguments of sbatch, which reads the script from its standard input.

    Args:
        folder: where the log of the node is written, on a file system that all nodes share.
    """
    values: dict[str, str | int | None] = {
        "job-name": launch.id,
        "comment": mark(cluster, compute.name),
        "nodes": 1,
        "ntasks": 1,
        "partition": compute.low_priority_partition if compute.tier == "low_priority" else compute.partition,
        "account": compute.account,
        "qos": compute.qos,
        "time": compute.walltime,
        "cpus-per-task": math.ceil(compute.cpus) if compute.cpus else None,
        "mem": f"{math.ceil(compute.memory_bytes / _MIB)}M" if compute.memory_bytes else None,
        "gres": ":".join(filter(None, ("gpu", compute.gpu_type, str(compute.gpus)))) if compute.gpus else None,
        "constraint": compute.constraint,
        # Two of one name never run at once, should an answer of Slurm's have been lost and the launch be asked for
        # twice: names of jobs need not be unique.
        "dependency": "singleton",
        "signal": f"B:TERM@{LEAVES_BEFORE_S}",
        "export": "ALL",
        "chdir": str(folder),
        "output": str(folder / f"{launch.id.replace('%', '%%')}.log"),  # in which Slurm replaces nothing
        "open-mode": "truncate",
    }
    options = [f"--{name}={value}" for name, value in values.items() if value not in (None, "")]
    extra = [f"--{name}" if value is True else f"--{name}={value}" for name, value in sorted(compute.options.items())]
    return ["--parsable", "--no-requeue", *options, *extra]


def script(compute: SlurmCompute, launch: Launch, *, python: str, environment: Mapping[str, str]) -> str:
    """The script of the job, which becomes the agent: Slurm's signal reaches it, and its end is that of the job.

    Args:
        python: the interpreter, if the compute names none.
        environment: settings of the agent that are no secrets; those of the launch go before them.
    """
    folders = {"work-dir": compute.work_dir and f"{compute.work_dir}/{launch.id}", "cache-dir": compute.cache_dir,
               "secrets-dir": compute.secrets_dir}  # fmt: skip
    flags = [word for name, value in folders.items() if value for word in (f"--{name}", value)]
    settings = {**launch.environment, **environment}
    exports = "".join(f"export {_variable(name)}={shlex.quote(value)}\n" for name, value in sorted(settings.items()))
    command = shlex.join([compute.python or python, *_AGENT, *flags, *launch.arguments])
    return (
        "#!/bin/sh\n"
        f"# {launch.id}: a node of ParallelRun's compute {compute.name}.\n"
        'export PARALLELRUN_SLOTS="${SLURM_CPUS_ON_NODE:-1}"\n'
        f"{exports}"
        f"exec {command}\n"
    )


def _variable(name: str) -> str:
    if not name.isascii() or not name.isidentifier():
        raise ValueError(f"{name!r} is no name of a variable")
    return name
