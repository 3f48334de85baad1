"""The GPUs of a node, one for each worker while there are any (reference §3.7)."""

from __future__ import annotations

import os
import subprocess
from itertools import takewhile
from pathlib import Path

from parallelrun_core.service.telemetry import logger

log = logger()

VARIABLE = "CUDA_VISIBLE_DEVICES"
_NVIDIA_SMI_S = 10


class GpuPool:
    """Which worker has which GPU. A node without any doesn't touch its workers' environment.

    Args:
        devices: as CUDA_VISIBLE_DEVICES names them.
    """

    def __init__(self, devices: list[str]) -> None:
        self._free = list(devices)
        self._taken: dict[str, str] = {}
        self._order = {device: place for place, device in enumerate(devices)}

    def workers(self, wanted: int | None, slots: int) -> int:
        """How many workers a job has on this node: what it asks for, or the default (reference §1.1).

        That is one for each slot, and on a node with GPUs one: workers beyond the GPUs would be without any.
        """
        return wanted or (1 if self._order else slots)

    def take(self, worker: str) -> dict[str, str]:
        """The variable for the environment of a worker that starts: its GPU, or none when all are taken."""
        if not self._order:
            return {}
        if not self._free:
            return {VARIABLE: ""}
        self._taken[worker] = device = self._free.pop(0)
        return {VARIABLE: device}

    def give_back(self, worker: str) -> None:
        """That worker has ended: its GPU is free for the next one."""
        device = self._taken.pop(worker, None)
        if device is not None:
            self._free = sorted([*self._free, device], key=self._order.__getitem__)


def find_gpus(count: int | None, proc: Path = Path("/proc/driver/nvidia/gpus")) -> list[str]:
    """The GPUs that this node may use: those in its environment, as many as are set, or all that are found."""
    given = os.environ.get(VARIABLE)
    if given is not None:
        devices = [device for each in given.split(",") if (device := each.strip())]
        return list(takewhile(lambda device: not device.startswith("-"), devices))[:count]  # as CUDA reads it
    if count is None:
        count = _count(proc)
    return [str(number) for number in range(count)]


def _count(proc: Path) -> int:
    try:
        return len(list(proc.iterdir()))
    except OSError:
        pass
    try:
        done = subprocess.run(
            ["nvidia-smi", "--list-gpus"],  # noqa: S607 - wherever the driver has put it
            capture_output=True, text=True, timeout=_NVIDIA_SMI_S, check=False,
        )  # fmt: skip
    except FileNotFoundError:
        return 0
    except (OSError, subprocess.SubprocessError) as error:
        log.warning("gpus_unknown", error=str(error))
        return 0
    return len(done.stdout.splitlines()) if done.returncode == 0 else 0
