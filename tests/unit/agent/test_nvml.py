"""The use of GPUs, from a stand-in for NVIDIA's library; without the library, nothing."""

from __future__ import annotations

import csv
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from parallelrun_agent.node.nvml import GpuMeter, GpuWatch
from parallelrun_core.answers.nodes import NodeGpu
from tests.unit.agent.monitoring import sample_twice

GIB = 1 << 30
UUIDS = ("GPU-aaaa", "GPU-bbbb")
PART = "MIG-cccc"


class NVMLError(Exception):
    """The library's own."""


class FakeNvml(ModuleType):
    """Two GPUs, the second of which is divided and has one part."""

    def __init__(self) -> None:
        super().__init__("pynvml")
        self.processes: dict[str, list[Any]] = {}

    def nvmlInit(self) -> None:
        pass

    def nvmlDeviceGetCount(self) -> int:
        return len(UUIDS)

    def nvmlDeviceGetHandleByIndex(self, number: int) -> str:
        return UUIDS[number]

    def nvmlDeviceGetUUID(self, handle: str) -> bytes:
        return handle.encode()  # as older versions do

    def nvmlDeviceGetName(self, handle: str) -> str:
        return "NVIDIA Fake" if handle != PART else "NVIDIA Fake MIG 1g.5gb"

    def nvmlDeviceGetMigMode(self, handle: str) -> list[int]:
        if handle == UUIDS[0]:
            raise NVMLError("Not Supported")
        return [1, 1]

    def nvmlDeviceGetMaxMigDeviceCount(self, handle: str) -> int:
        return 7

    def nvmlDeviceGetMigDeviceHandleByIndex(self, handle: str, place: int) -> str:
        if place:
            raise NVMLError("Not Found")
        return PART

    def nvmlDeviceGetUtilizationRates(self, handle: str) -> SimpleNamespace:
        if handle == PART:
            raise NVMLError("Not Supported")
        return SimpleNamespace(gpu=25, memory=10)

    def nvmlDeviceGetMemoryInfo(self, handle: str) -> SimpleNamespace:
        return SimpleNamespace(total=40 * GIB, used=10 * GIB, free=30 * GIB)

    def nvmlDeviceGetComputeRunningProcesses(self, handle: str) -> list[Any]:
        return self.processes.get(handle, [])


@pytest.fixture
def nvml(monkeypatch: pytest.MonkeyPatch) -> FakeNvml:
    fake = FakeNvml()
    monkeypatch.setitem(sys.modules, "pynvml", fake)
    return fake


@pytest.mark.usefixtures("nvml")
def test_only_those_that_workers_get_are_measured_by_number_or_uuid() -> None:
    whole = NodeGpu(device="0", name="NVIDIA Fake", utilization=0.25, memory_used_bytes=10 * GIB, memory_bytes=40 * GIB)
    assert GpuMeter(["0"]).uses() == [whole]
    (part,) = GpuMeter([PART]).uses()
    assert (part.device, part.utilization, part.memory_used_bytes) == (PART, None, 10 * GIB)
    assert [gpu.device for gpu in GpuMeter(["GPU-b", "0", "7"]).uses()] == ["GPU-b", "0"]


@pytest.fixture
def worker() -> Iterator[int]:
    """The id of a process with a group of its own, as workers have."""
    with subprocess.Popen(["sleep", "60"], start_new_session=True) as process:
        yield process.pid
        process.kill()


def test_a_worker_has_the_memory_of_all_its_processes(
    nvml: FakeNvml, worker: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nvml.processes["GPU-aaaa"] = [
        SimpleNamespace(pid=worker, usedGpuMemory=3 << 20),
        SimpleNamespace(pid=worker, usedGpuMemory=None),
        SimpleNamespace(pid=2**22 + 1, usedGpuMemory=1 << 20),
    ]
    assert GpuMeter(["0"]).process_bytes() == {worker: 3 << 20}
    sample_twice(tmp_path, {"process000": worker}, monkeypatch, gpus=["0"])
    with (tmp_path / "node_gpu_usage.csv").open(newline="") as file:
        _, gpu = csv.DictReader(file)
    assert [gpu[name] for name in ("Gpu", "Utilization Percent", "Memory Used (MB)")] == ["0", "25", "10240.0"]
    with (tmp_path / "processes_resource_usage.csv").open(newline="") as file:
        _, row = csv.DictReader(file)
    assert row["Gpu Memory (MB)"] == "3.0"


def fails() -> None:
    raise NVMLError("Driver/library version mismatch")


@pytest.mark.parametrize("init", [fails, None], ids=["without a driver", "not installed"])
def test_where_nothing_can_be_measured_nothing_is_said(
    nvml: FakeNvml, init: Callable[[], None] | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if init is None:
        monkeypatch.setitem(sys.modules, "pynvml", None)
    else:
        monkeypatch.setattr(nvml, "nvmlInit", init)
    meter = GpuMeter(["0"])
    assert (meter.can_measure, meter.uses(), dict(meter.process_bytes())) == (False, [], {})
    sample_twice(tmp_path, {}, monkeypatch, gpus=["0"])
    assert not (tmp_path / "node_gpu_usage.csv").exists()


def test_a_node_without_gpus_does_not_even_look_for_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    watch = GpuWatch([])
    assert watch.latest == []
    assert not GpuMeter([]).can_measure


@pytest.mark.usefixtures("nvml")
def test_heartbeats_have_what_was_measured_last() -> None:
    watch = GpuWatch(["0"])
    deadline = time.monotonic() + 10
    while not watch.latest:
        assert time.monotonic() < deadline
        time.sleep(0.005)
    watch.stop()
    assert [gpu.device for gpu in watch.latest] == ["0"]
