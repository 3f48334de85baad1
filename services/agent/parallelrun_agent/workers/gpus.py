"""The GPUs of a node: one for each worker while there are any (reference §3.7), or as many as their job asks."""

from __future__ import annotations

import os
import re
import subprocess
from fractions import Fraction
from itertools import takewhile
from pathlib import Path

from parallelrun_core.service.children import Child, variables_for
from parallelrun_core.service.telemetry import logger

log = logger()

VARIABLE = "CUDA_VISIBLE_DEVICES"
ORDER = "CUDA_DEVICE_ORDER"
BY_BUS = "PCI_BUS_ID"
"""The order of `nvidia-smi` and of the driver's files. CUDA's own begins with the fastest one, so that a number could
mean another GPU to it than to us."""
_NVIDIA_SMI_S = 10
_GPU = re.compile(r"GPU (\d+): ")
_PART = re.compile(r"\s+MIG .*\(UUID: (MIG-[\w/-]+)\)")


class GpuPool:
    """The assignment of GPUs, or shares of one, to workers. A node without any doesn't touch its workers' environment.

    Args:
        devices: as CUDA_VISIBLE_DEVICES names them.
    """

    def __init__(self, devices: list[str]) -> None:
        self.devices = tuple(devices)
        self._allocated: dict[str, tuple[list[str], Fraction]] = {}
        """Of each worker: its GPUs, and the part of each that it has."""
        self._load = dict.fromkeys(self.devices, Fraction(0))

    def workers(self, requested: int | None, slots: int, gpus: Fraction | None = None) -> int:
        """Return how many workers a job has on this node: what it asks for, or the default (reference §1.1).

        That is one for each slot, and on a node with GPUs one: workers beyond the GPUs would be without any. A job that
        says how many GPUs a worker has, or which part of one, has as many as fit.
        """
        on_gpus = int(len(self.devices) / gpus) or 1 if gpus else 1
        return requested or (on_gpus if self.devices else slots)

    def take(self, worker: str, gpus: Fraction = Fraction(1)) -> dict[str, str]:
        """The variables for the environment of a worker that starts: its GPUs, or none when too few are free.

        Args:
            gpus: how many it has, or which part of one. Workers that share some are spread over them.
        """
        if not self.devices:
            return {}
        share, count = min(gpus, Fraction(1)), max(1, int(gpus))
        free = [device for device in self.devices if self._load[device] + share <= 1]
        if len(free) < count:
            return {VARIABLE: ""}
        # Sorting is stable: of those that are as free, the first ones, which are often near each other.
        devices = sorted(sorted(free, key=self._load.__getitem__)[:count], key=self.devices.index)
        for device in devices:
            self._load[device] += share
        self._allocated[worker] = devices, share
        return {VARIABLE: ",".join(devices), ORDER: os.environ.get(ORDER, BY_BUS)}

    def give_back(self, worker: str) -> None:
        """Free the GPUs of a worker that has ended, for the next one."""
        devices, share = self._allocated.pop(worker, ([], Fraction(0)))
        for device in devices:
            self._load[device] -= share


def find_gpus(count: int | None, driver: Path = Path("/proc/driver/nvidia")) -> list[str]:
    """The GPUs that this node may use: those in its environment, as many as are set, or all that are found.

    A GPU that is divided (MIG) counts as its parts, by their UUIDs.
    """
    visible_devices = os.environ.get(VARIABLE)
    if visible_devices is not None:
        devices = [device for each in visible_devices.split(",") if (device := each.strip())]
        return list(takewhile(lambda device: not device.startswith("-"), devices))[:count]  # as CUDA reads it
    if count == 0:
        return []
    is_divided = any(driver.glob("capabilities/gpu*/mig/gi*"))
    if not is_divided and count is None:
        count = _count(driver / "gpus")
    if is_divided or count is None:
        return _listed()[:count]
    return [str(number) for number in range(count)]


def _count(gpus: Path) -> int | None:
    """Return how many the driver has; None: its files don't say."""
    try:
        return len(list(gpus.iterdir()))
    except OSError:
        return None


def _listed() -> list[str]:
    """Return the GPUs that `nvidia-smi` lists: each by its number, or by the UUIDs of its parts."""
    try:
        done = subprocess.run(
            ["nvidia-smi", "--list-gpus"],  # noqa: S607 - wherever the driver has put it
            env=variables_for(Child.DRIVER, os.environ),
            capture_output=True, text=True, timeout=_NVIDIA_SMI_S, check=False,
        )  # fmt: skip
    except FileNotFoundError:
        return []
    except (OSError, subprocess.SubprocessError) as error:
        log.warning("gpus_unknown", error=str(error))
        return []
    devices: list[list[str]] = []
    for line in done.stdout.splitlines() if done.returncode == 0 else ():
        if gpu := _GPU.match(line):
            devices.append([gpu[1]])
        elif devices and (part := _PART.match(line)):
            devices[-1] = [*(each for each in devices[-1] if each.startswith("MIG-")), part[1]]
    return [device for each in devices for device in each]
