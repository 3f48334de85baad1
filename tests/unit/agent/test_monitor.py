"""The tables of a node's use: with the reference's names, filled by psutil, and off when asked."""

from __future__ import annotations

import csv
import os
import socket
import threading
import time
from pathlib import Path

import pytest

from parallelrun_agent.node import monitor
from parallelrun_agent.node.monitor import ResourceMonitor
from parallelrun_agent.node.usage import ProcessTable
from tests.unit.agent.monitoring import sample_twice


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_the_first_sample_and_the_last_one_have_a_row_in_each_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sample_twice(tmp_path, {"process000": os.getpid(), "gone": 2**22 + 1}, monkeypatch)
    first, node = rows_of(tmp_path / "node_resource_usage.csv")
    assert first["Utc Time"] < node["Utc Time"]
    assert list(node) == [
        "Utc Time", "Cpu Percent", "Memory Total (MB)", "Memory Available (MB)", "Memory Used (MB)",
        "Memory Used Percent", "Disk Io Read Count", "Disk Io Write Count", "Disk Io Read (MB)", "Disk Io Write (MB)",
        "Network Sent (MB)", "Network Recv (MB)", "# of TCP Connections", "# of UDP Connections",
        "Pressure Of", "Cpu Pressure (s)", "Cpu Pressure Full (s)", "Io Pressure (s)", "Io Pressure Full (s)",
        "Memory Pressure (s)", "Memory Pressure Full (s)", "Cpu Limit", "Throttled Periods", "Throttled (s)",
        "Page Faults", "Major Page Faults", "Context Switches", "Oom Kills", "Cpus", "Host",
    ]  # fmt: skip
    assert node["Host"] == socket.gethostname()
    assert 0 < float(node["Memory Used (MB)"]) < float(node["Memory Total (MB)"])
    assert 0 <= float(node["Cpu Percent"]) <= 100
    assert int(node["Page Faults"]) > int(node["Major Page Faults"]) >= 0
    assert int(node["Context Switches"]) > 0
    _, worker = rows_of(tmp_path / "processes_resource_usage.csv")
    assert (worker["Process"], worker["Pid"]) == ("process000", str(os.getpid()))
    assert float(worker["Memory Rss (MB)"]) > 1
    disks = rows_of(tmp_path / "node_disk_usage.csv")
    assert disks
    assert all(float(disk["Total (MB)"]) >= float(disk["Used (MB)"]) for disk in disks)


def test_none_at_all_when_the_interval_is_zero(tmp_path: Path) -> None:
    before = threading.active_count()
    watching = ResourceMonitor(tmp_path / "perf", 0, dict)
    assert threading.active_count() == before
    watching.stop()
    assert not (tmp_path / "perf").exists()


def test_nothing_is_written_for_a_job_that_is_over_before_the_first_sample(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(monitor, "_FIRST_SAMPLE_S", 600.0)
    ResourceMonitor(tmp_path / "perf", 600, dict).stop()
    assert not (tmp_path / "perf").exists()


def test_nothing_is_written_for_a_job_that_had_no_worker_here(tmp_path: Path) -> None:
    ResourceMonitor(tmp_path / "perf", 600, dict).stop(takes_sample=False)
    assert not (tmp_path / "perf").exists()


def test_all_processes_are_written_down_and_old_hours_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(monitor, "_PROCESSES_EVERY_S", 0.05)
    hours = tmp_path / "processes_cpu_memory_usage"
    for hour in range(10):
        (hours / f"20200101{hour:02d}").mkdir(parents=True)

    def of_this_hour() -> list[Path]:
        newest = max(hours.iterdir())  # one that is kept: the older ones are removed meanwhile
        return [path for path in newest.glob("processes_*") if path.stat().st_size]

    watching = ResourceMonitor(tmp_path, 600, dict)
    try:
        deadline = time.monotonic() + 30
        while not (found := of_this_hour()):
            assert time.monotonic() < deadline
            time.sleep(0.01)
    finally:
        watching.stop()
    text = found[0].read_text()
    assert "processes by CPU" in text
    assert "processes by memory" in text
    assert f"  {os.getpid():7}  " in text
    assert len(list(hours.iterdir())) == 4


def test_a_folder_that_cannot_be_written_stops_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "perf").write_text("a file where a folder should be")
    sample_twice(tmp_path / "perf", {"process000": os.getpid()}, monkeypatch)


def test_a_process_is_told_by_what_it_used_since_the_last_look() -> None:
    table = ProcessTable()
    table.cpu_percent(os.getpid())
    until = time.process_time() + 0.05
    while time.process_time() < until:
        pass
    assert table.cpu_percent(os.getpid()) > 0
