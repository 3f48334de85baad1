"""Pressure and throttling, from files as the kernel writes them, in both versions of cgroups."""

from __future__ import annotations

from pathlib import Path

import pytest

from parallelrun_agent.node.cgroups import folders
from parallelrun_agent.node.waits import Pressure, PressureReader, Throttling

SOME = "some avg10=50.00 avg60={share} avg300=9.00 total={total}\n"
FULL = "full avg10=0.00 avg60=1.00 avg300=0.00 total=250000\n"


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.fixture
def kernel(tmp_path: Path) -> Path:
    """One that measures the machine, and knows no cgroups."""
    for name in ("cpu", "io", "memory"):
        write(tmp_path / "proc/pressure" / name, SOME.format(share="12.50", total=3_000_000) + FULL)
    write(tmp_path / "proc/self/cgroup", "")
    (tmp_path / "cgroup").mkdir()
    return tmp_path


def waits(kernel: Path) -> PressureReader:
    return PressureReader(kernel / "proc", kernel / "cgroup")


def test_without_cgroups_the_machine_is_measured(kernel: Path) -> None:
    machine = waits(kernel)
    assert (machine.of, machine.throttling()) == ("machine", None)
    assert machine.pressure("io") == Pressure(some_s=3.0, full_s=0.25, share=0.125)


def test_a_cgroup_of_version_2_is_measured_by_itself(kernel: Path) -> None:
    write(kernel / "proc/self/cgroup", "0::/agents/one\n")
    own = kernel / "cgroup/agents/one"
    for name in ("cpu", "io", "memory"):
        write(own / f"{name}.pressure", SOME.format(share="0.00", total=1_500_000))
    write(own / "cgroup.type", "domain\n")
    write(own / "cpu.max", "max 100000\n")
    write(own.parent / "cpu.max", "150000 100000\n")
    write(own.parent / "cpu.stat", "usage_usec 9\nnr_periods 40\nnr_throttled 30\nthrottled_usec 2500000\n")
    cgroup = waits(kernel)
    assert cgroup.of == "cgroup"
    assert cgroup.pressure("cpu") == Pressure(1.5, 0.0, 0.0), "the kernel says no `full` of CPUs, before 5.13"
    assert cgroup.throttling() == Throttling(limit=1.5, periods=30, throttled_s=2.5), "the one above has the limit"


def test_the_cgroup_of_the_whole_machine_is_the_machine(kernel: Path) -> None:
    write(kernel / "proc/self/cgroup", "0::/\n")
    write(kernel / "cgroup/cpu.pressure", SOME.format(share="0.00", total=1))
    assert waits(kernel).of == "machine"


def test_a_container_sees_its_own_cgroup_as_the_first(kernel: Path) -> None:
    write(kernel / "proc/self/cgroup", "0::/docker/abc\n")
    write(kernel / "cgroup/cgroup.type", "domain\n")
    write(kernel / "cgroup/cpu.pressure", SOME.format(share="100.00", total=1_000_000))
    write(kernel / "cgroup/cpu.max", "50000 100000\n")
    container = waits(kernel)
    assert (container.of, container.pressure("cpu")) == ("cgroup", Pressure(1.0, 0.0, 1.0))
    assert container.throttling() == Throttling(0.5, 0, 0.0)


@pytest.mark.parametrize("mounted", ["cpu", "cpu,cpuacct"])
def test_version_1_has_limits_and_no_pressure_of_its_own(kernel: Path, mounted: str) -> None:
    write(kernel / "proc/self/cgroup", f"5:{mounted}:/docker/abc\n4:memory:/docker/abc\n")
    own = kernel / "cgroup" / mounted / "docker/abc"
    write(own / "cpu.cfs_quota_us", "200000\n")
    write(own / "cpu.cfs_period_us", "100000\n")
    write(own / "cpu.stat", "nr_periods 9\nnr_throttled 4\nthrottled_time 1500000000\n")
    cgroup = waits(kernel)
    assert (cgroup.of, cgroup.throttling()) == ("machine", Throttling(limit=2.0, periods=4, throttled_s=1.5))


def test_no_limit_in_version_1_is_minus_one(kernel: Path) -> None:
    write(kernel / "proc/self/cgroup", "5:cpu:/a\n")
    write(kernel / "cgroup/cpu/a/cpu.cfs_quota_us", "-1\n")
    write(kernel / "cgroup/cpu/a/cpu.cfs_period_us", "100000\n")
    assert waits(kernel).throttling() is None


@pytest.mark.parametrize("text", ["", "some\n", "some avg60=x total=1\n", "some avg60=1.0 total=?\n"])
def test_a_kernel_that_does_not_measure_pressure_says_nothing(kernel: Path, text: str) -> None:
    write(kernel / "proc/pressure/cpu", text)
    assert waits(kernel).pressure("cpu") is None


def test_the_unified_folder_beside_version_1_is_found(kernel: Path) -> None:
    write(kernel / "proc/self/cgroup", "0::/x\n")
    assert kernel / "cgroup/unified/x" in folders("cpu", kernel / "proc", kernel / "cgroup")
