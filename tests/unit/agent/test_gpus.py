"""One GPU for each worker while there are any, or a share of one."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from parallelrun_agent.workers.gpus import ORDER, VARIABLE, GpuPool, find_gpus


def test_each_worker_gets_one_those_beyond_get_none_and_a_freed_one_goes_to_the_next() -> None:
    pool = GpuPool(["0", "1"])
    assert [pool.take(f"w{number}")[VARIABLE] for number in range(3)] == ["0", "1", ""]
    pool.give_back("w2")
    pool.give_back("w0")
    assert [pool.take(f"w{number}")[VARIABLE] for number in (3, 4)] == ["0", ""]
    pool.give_back("w1")
    pool.give_back("w3")
    assert [pool.take(f"w{number}")[VARIABLE] for number in (5, 6)] == ["0", "1"]


def test_workers_that_share_them_are_spread_and_never_more_than_fit() -> None:
    pool = GpuPool(["0", "1"])
    taken = [pool.take(f"w{number}", gpus=Fraction(1, 2))[VARIABLE] for number in range(5)]
    assert taken == ["0", "1", "0", "1", ""]
    assert pool.take("whole")[VARIABLE] == "", "half of one is not enough for a job that doesn't share"
    pool.give_back("w0")
    pool.give_back("w2")
    assert pool.take("whole")[VARIABLE] == "0"
    assert pool.take("w5", gpus=Fraction(1, 2))[VARIABLE] == ""
    pool.give_back("w1")
    assert pool.take("third", gpus=Fraction(1, 3))[VARIABLE] == "1"


def test_a_worker_may_have_several_which_nobody_else_has() -> None:
    pool = GpuPool(["0", "1", "2", "3"])
    assert pool.take("half", gpus=Fraction(1, 2))[VARIABLE] == "0"
    assert pool.take("pair", gpus=Fraction(2))[VARIABLE] == "1,2"
    assert pool.take("other pair", gpus=Fraction(2))[VARIABLE] == ""
    pool.give_back("half")
    assert pool.take("third pair", gpus=Fraction(2))[VARIABLE] == "0,3"
    pool.give_back("pair")
    assert [pool.take(f"w{number}")[VARIABLE] for number in range(3)] == ["1", "2", ""]
    assert pool.workers(None, slots=8, gpus=Fraction(2)) == 2
    assert pool.workers(None, slots=8, gpus=Fraction(8)) == 1


def test_numbers_mean_what_they_mean_to_the_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(ORDER, raising=False)
    assert GpuPool(["0"]).take("w") == {VARIABLE: "0", ORDER: "PCI_BUS_ID"}
    monkeypatch.setenv(ORDER, "FASTEST_FIRST")
    assert GpuPool(["0"]).take("w")[ORDER] == "FASTEST_FIRST", "it may say so with numbers of its own"


def test_a_node_without_any_leaves_the_environment_alone() -> None:
    assert GpuPool([]).take("w") == {}


def test_a_job_that_does_not_say_has_one_worker_where_there_are_some() -> None:
    """Reference §1.1: one on a GPU machine, otherwise as many as there are CPUs."""
    assert GpuPool(["0", "1"]).workers(None, slots=8) == 1
    assert GpuPool(["0", "1"]).workers(2, slots=8) == 2
    assert GpuPool([]).workers(None, slots=8) == 8
    assert GpuPool(["0", "1"]).workers(None, slots=8, gpus=Fraction(1, 3)) == 6
    assert GpuPool(["0", "1"]).workers(2, slots=8, gpus=Fraction(1, 3)) == 2
    assert GpuPool([]).workers(None, slots=8, gpus=Fraction(1, 3)) == 8


def test_they_are_counted_unless_somebody_says_which(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    for name in ("0000:01:00.0", "0000:02:00.0"):
        (tmp_path / "gpus" / name).mkdir(parents=True)
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


def test_divided_ones_are_given_out_by_their_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    (tmp_path / "gpus/0000:01:00.0").mkdir(parents=True)
    (tmp_path / "capabilities/gpu0/mig/gi1").mkdir(parents=True)
    (tmp_path / "nvidia-smi").write_text("""#!/bin/sh
cat <<END
GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-5d5ba0d6-d33d-2b2c-524d-9e3d8d2b8a77)
  MIG 1g.5gb      Device  0: (UUID: MIG-c6d4f1ef-42e4-5de3-91c7-45d71c87eb3f)
  MIG 1g.5gb      Device  1: (UUID: MIG-GPU-5d5ba0d6-d33d-2b2c-524d-9e3d8d2b8a77/8/0)
GPU 1: NVIDIA A100-SXM4-40GB (UUID: GPU-f35a2c9e-0000-0000-0000-000000000000)
END
""")
    (tmp_path / "nvidia-smi").chmod(0o755)
    parts = ["MIG-c6d4f1ef-42e4-5de3-91c7-45d71c87eb3f", "MIG-GPU-5d5ba0d6-d33d-2b2c-524d-9e3d8d2b8a77/8/0"]
    assert find_gpus(None, tmp_path) == [*parts, "1"]
    assert find_gpus(1, tmp_path) == parts[:1]
    assert find_gpus(0, tmp_path) == []
