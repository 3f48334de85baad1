"""GPU usage of a node, by NVIDIA's library NVML where it is installed (`nvidia-ml-py`, extra `gpu`)."""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any, Final

from parallelrun_core.answers.nodes import NodeGpu
from parallelrun_core.service.telemetry import logger

log = logger()

_MODULE: Final = "pynvml"
_EVERY_S: Final = 5.0


class GpuMeter:
    """Measures the GPUs that workers of this node get. Each call may take some milliseconds, the first one more.

    Args:
        devices: as CUDA_VISIBLE_DEVICES names them: by number in the order of the bus, or by the beginning of a UUID.
    """

    def __init__(self, devices: Sequence[str]) -> None:
        self._devices = devices
        self._nvml: Any = None
        self._handles: dict[str, Any] | None = None

    @property
    def can_measure(self) -> bool:
        """Return whether there is anything to measure, and the library for it."""
        return bool(self._found())

    def uses(self) -> list[NodeGpu]:
        """Return the usage of each GPU; what the library doesn't tell of one, as the utilization of a part (MIG), is
        unknown."""
        return [self._use(device, handle) for device, handle in self._found().items()]

    def process_bytes(self) -> Counter[int]:
        """Memory on these GPUs by process group: a worker with what it has started.

        None are known in a container that has processes of its own only: NVML tells of those of the machine.
        """
        bytes_by_pid: Counter[int] = Counter()
        for handle in self._found().values():
            for process in self._asked("nvmlDeviceGetComputeRunningProcesses", handle) or ():
                with suppress(ProcessLookupError, PermissionError):
                    bytes_by_pid[os.getpgid(process.pid)] += process.usedGpuMemory or 0
        return bytes_by_pid

    def _found(self) -> dict[str, Any]:
        if self._handles is None:
            self._handles = dict(self._find()) if self._devices and self._load() else {}
        return self._handles

    def _load(self) -> bool:
        try:
            self._nvml = import_module(_MODULE)
            self._nvml.nvmlInit()
        except ImportError:
            return False
        except Exception as error:  # the library's own: there is no driver, or another version of it
            log.warning("gpus_not_measured", error=str(error))
            return False
        return True

    def _find(self) -> Iterator[tuple[str, Any]]:
        devices: list[tuple[str, str, Any]] = []
        for number in range(self._asked("nvmlDeviceGetCount") or 0):
            handle = self._asked("nvmlDeviceGetHandleByIndex", number)
            if handle is not None:
                devices.append((str(number), self._text("nvmlDeviceGetUUID", handle), handle))
                devices += self._parts(handle)
        for device in self._devices:
            yield from (
                (device, handle) for number, uuid, handle in devices if device == number or _names(device, uuid)
            )

    def _parts(self, handle: Any) -> Iterator[tuple[str, str, Any]]:
        mode = self._asked("nvmlDeviceGetMigMode", handle)
        for place in range((self._asked("nvmlDeviceGetMaxMigDeviceCount", handle) or 0) if mode and mode[0] else 0):
            part = self._asked("nvmlDeviceGetMigDeviceHandleByIndex", handle, place)
            if part is not None:
                yield "", self._text("nvmlDeviceGetUUID", part), part

    def _use(self, device: str, handle: Any) -> NodeGpu:
        rates, memory = (
            self._asked("nvmlDeviceGetUtilizationRates", handle),
            self._asked("nvmlDeviceGetMemoryInfo", handle),
        )
        return NodeGpu(
            device=device,
            name=self._text("nvmlDeviceGetName", handle),
            utilization=rates.gpu / 100 if rates else None,
            memory_used_bytes=memory.used if memory else None,
            memory_bytes=memory.total if memory else None,
        )

    def _text(self, function: str, handle: Any) -> str:
        text = self._asked(function, handle) or ""
        return text.decode(errors="replace") if isinstance(text, bytes) else str(text)

    def _asked(self, function: str, *arguments: Any) -> Any:
        """Return what the library answers; None: it can't, or this version of it doesn't know that."""
        try:
            return getattr(self._nvml, function)(*arguments)
        except Exception:  # its errors are classes of its own, many of them "not supported"
            return None


class GpuWatch:
    """The watch over GPUs, measured every few seconds in a thread: the driver may take its time, or hang."""

    def __init__(self, devices: Sequence[str]) -> None:
        self.latest: list[NodeGpu] = []
        self._meter = GpuMeter(devices)
        self._stopped = threading.Event()
        if devices:
            threading.Thread(target=self._run, name="gpus", daemon=True).start()

    def stop(self) -> None:
        """Measure no more."""
        self._stopped.set()

    def _run(self) -> None:
        while self._meter.can_measure:
            self.latest = self._meter.uses()
            if self._stopped.wait(_EVERY_S):
                return


def _names(device: str, uuid: str) -> bool:
    """Return whether CUDA would take this for a GPU's UUID: its beginning is enough."""
    return device.startswith(("GPU-", "MIG-")) and uuid.startswith(device)
