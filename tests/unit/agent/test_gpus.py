"""One GPU for each worker while there are any."""

from __future__ import annotations

from pathlib import Path

import pytest

from parallelrun_agent.workers.gpus import VARIABLE, GpuPool, find_gpus


def test_each_worker_gets_one_those_beyond_get_none_and_a_freed_one_goes_to_the_next() -> None:
    pool = GpuPool(["0", "1"])
    assert [pool.take(f"w{number}")[VARIABLE] for number in range(3)] == ["0", "1", ""]
    pool.give_back("w2")
    pool.give_back("w0")
    assert [pool.take(f"w{number}")[VARIABLE] for number in (3, 4)] == ["0", ""]
    pool.give_back("w1")
    pool.give_back("w3")
    assert [pool.take(f"w{number}")[VARIABLE] for number in (5, 6)] == ["0", "1"]


def test_a_node_without_any_leaves_the_environment_alone() -> None:
    assert GpuPool([]).take("w") == {}


def test_a_job_that_does_not_say_has_one_worker_where_there_are_some() -> None:
    """Reference §1.1: one on a GPU machine, otherwise as many as there are CPUs."""
    assert GpuPool(["0", "1"]).workers(None, slots=8) == 1
    assert GpuPool(["0", "1"]).workers(2, slots=8) == 2
    assert GpuPool([]).workers(None, slots=8) == 8


def test_they_are_counted_unless_somebody_says_which(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    for name in ("0000:01:00.0", "0000:02:00.0"):
        (tmp_path / name).mkdir()
    assert find_gpus(None, tmp_path) == ["0", "1"]
    assert find_gpus(3, tmp_path) == ["0", "1", "2"]
    monkeypatch.setenv(VARIABLE, "4,GPU-abc,7")
    assert find_gpus(None, tmp_path) == ["4", "GPU-abc", "7"]
    assert find_gpus(2, tmp_path) == ["4", "GPU-abc"]
    for none in ("", "-1", "-1,0"):  # a negative number hides itself and all that follow
        monkeypatch.setenv(VARIABLE, none)
        assert find_gpus(None, tmp_path) == []
    monkeypatch.setenv(VARIABLE, "0, 1,-1,2")
    assert find_gpus(None, tmp_path) == ["0", "1"]


def test_without_a_driver_nvidia_smi_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_gpus(None, tmp_path / "none") == []
    (tmp_path / "nvidia-smi").write_text("#!/bin/sh\necho GPU 0: A\necho GPU 1: B\n")
    (tmp_path / "nvidia-smi").chmod(0o755)
    assert find_gpus(None, tmp_path / "none") == ["0", "1"]
    (tmp_path / "nvidia-smi").write_text("#!/bin/sh\necho no driver\nexit 9\n")
    assert find_gpus(None, tmp_path / "none") == []
