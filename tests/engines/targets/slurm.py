"""Batch jobs of a Slurm cluster whose nodes share this machine's file system."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection
from pathlib import Path
from typing import Any, Self

from parallelrun_core.computes.launch import compute_of
from tests.engines import slurm
from tests.engines.target import Missing


class Slurm:
    """The cluster that `SLURM_CONF` names, or one of this machine."""

    name = "slurm"
    has_images = False

    def __enter__(self) -> Self:
        try:
            slurm.reach()
        except slurm.SlurmMissing as error:
            raise Missing(str(error)) from error
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def document(self) -> dict[str, Any]:
        return {"type": self.name, "slots": 1, "cpus": 1, "walltime": "1:00:00", "python": sys.executable}

    def environment(self, seen: Collection[Path], secret: Path) -> dict[str, str]:
        return {"SLURM_CONF": os.environ["SLURM_CONF"]} if "SLURM_CONF" in os.environ else {}

    def left(self) -> list[str]:
        return self.running()

    def remove(self, launch_id: str) -> None:
        self.kill(launch_id)

    def running(self) -> list[str]:
        return [name for name in slurm.jobs() if compute_of(name)]

    def kill(self, launch_id: str) -> None:
        """Half of them as by preemption: SIGTERM for all processes, then SIGKILL."""
        job = slurm.jobs().get(launch_id)
        if job is not None:
            slurm.cancel(job, *([] if int(launch_id[-1], 16) % 2 else ["--signal=KILL", "--full"]))


def reach() -> Slurm:
    return Slurm()
