"""`parallelrun doctor` on this machine, with things that are really broken as far as they can be had."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from parallelrun.cli import main
from parallelrun.cli.exit_codes import ExitCode
from parallelrun.doctor import checkup as checkups
from parallelrun.doctor.checkup import Reported, checkup
from parallelrun.doctor.computes import finding_of
from parallelrun.models import Compute, ComputeStatus
from parallelrun_core.checks import kernel, volume
from parallelrun_core.wire.finding import Finding, Level, Place, ok

SCRIPT = "def run(mini_batch):\n    return mini_batch\n"


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No cluster and no server that somebody else runs."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for name in ("PARALLELRUN_URL", "PARALLELRUN_TOKEN", "REDIS_URL", "PARALLELRUN_REDIS_URL", "PARALLELRUN_ROOT"):
        monkeypatch.delenv(name, raising=False)


def said(root: Path, subject: str, level: Level, **place: object) -> list[str]:
    """What was said of a subject, with what to do."""
    reports = checkup(Place(root=root, **place))  # type: ignore[arg-type]
    return [f"{each.what} -> {each.todo}" for each in reports if (each.subject, each.level) == (subject, level)]


def test_on_a_sound_machine_nothing_is_bad_and_nothing_is_left(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["doctor", "--root", str(tmp_path)]) == ExitCode.OK

    lines = capsys.readouterr().out.splitlines()
    assert {line[:5] for line in lines} <= {"ok   ", "warn "}
    assert any("hard links, renames over a file" in line for line in lines)
    assert any(line.startswith("warn separation: workers of") and "SECURITY.md" in line for line in lines)
    assert list(tmp_path.iterdir()) == []


def test_programs_get_the_same_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--root", str(tmp_path), "-o", "json"]) == ExitCode.OK

    reports = json.loads(capsys.readouterr().out)
    assert {"machine", "kernel", "volume", "separation"} <= {each["subject"] for each in reports}
    assert all({"level", "what", "todo"} <= each.keys() for each in reports)
    assert [each for each in reports if each["level"] != "ok" and not each["todo"]] == []


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own with hardly any room, in memory."""
    folder = tmp_path / "small"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(command, check=False, capture_output=True).returncode:
        pytest.skip("only root may mount a file system")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_disk_that_is_nearly_full_or_in_memory_is_named(small_disk: Path) -> None:
    assert any("1 MiB are free of 1 -> make room" in line for line in said(small_disk, "volume", Level.BAD))
    assert any("in memory (tmpfs)" in line for line in said(small_disk, "volume", Level.WARN))


def test_a_root_that_cannot_be_written_to_is_bad(small_disk: Path) -> None:
    """Root may write to any folder but one on a volume that is read-only."""
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)

    [line, *_] = said(small_disk, "volume", Level.BAD)

    assert line.startswith(f"{small_disk} can't be written to: Read-only file system -> ")


def test_a_folder_of_somebody_else_is_bad(tmp_path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may write to any folder")
    tmp_path.chmod(0o500)

    [line, *_] = said(tmp_path, "volume", Level.BAD)

    assert "can't be written to: Permission denied" in line


def test_a_volume_without_hard_links_is_bad(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No file system without them can be mounted everywhere, so the system's refusal is played."""

    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)

    assert said(tmp_path, "volume", Level.BAD) == [
        "hard links: Operation not permitted; two could then publish one output -> "
        "name a folder on another file system (--root here, --root of `parallelrun up`, PARALLELRUN_ROOT)"
    ]
    assert list(tmp_path.iterdir()) == []


def test_a_network_file_system_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """None can be had in a test, so the kernel's list of mounts is another one."""
    mounts = tmp_path / "mounts"
    mounts.write_text(f"1 0 0:1 / / rw - ext4 /dev/a rw\n2 1 0:2 / {tmp_path} rw shared:1 - nfs4 server:/a rw\n")
    monkeypatch.setattr(volume, "_MOUNTS", mounts)

    assert any("on a network file system (nfs4)" in line for line in said(tmp_path, "volume", Level.WARN))


def test_a_check_that_hangs_or_breaks_is_reported_and_the_others_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow_volume(_: Place) -> Iterator[Finding]:
        time.sleep(2)
        yield ok("too late")

    def broken(_: Place) -> Iterator[Finding]:
        raise OSError("it is on fire")

    monkeypatch.setattr(volume, "CHECKS", (slow_volume, broken))
    monkeypatch.setattr(checkups, "subjects", lambda: {each.__name__: each.CHECKS for each in (volume, kernel)})

    reports = list(checkup(Place(root=tmp_path), longest_s=0.2))

    assert [each.what for each in reports if each.level is Level.BAD] == [
        "slow volume: no answer within 0.2 s", "broken: it is on fire"
    ]  # fmt: skip
    assert any(each.subject == kernel.__name__ for each in reports)


def job(folder: Path, text: str) -> Path:
    """A job file beside an entry script and an input."""
    (folder / "src").mkdir()
    (folder / "src" / "entry.py").write_text(SCRIPT)
    (folder / "data").mkdir()
    (folder / "data" / "one.txt").touch()
    file = folder / "job.yml"
    file.write_text(f"code: src\nentry_script: entry.py\n{text}")
    return file


def of_job(file: Path) -> list[Reported]:
    return [each for each in checkup(Place(root=file.parent, job_file=file)) if each.subject == "job"]


def test_a_job_file_that_is_fine_is_described(tmp_path: Path) -> None:
    reports = of_job(job(tmp_path, "inputs: data\noutput: out\n"))

    assert {each.level for each in reports} == {Level.OK}
    assert [each.what for each in reports][1:] == [
        "code, entry script (entry.py) and inputs are there",
        "input data: 1 file",
        f"output: {tmp_path}/out can be written",
    ]
    assert not (tmp_path / "out").exists()


def test_a_missing_input_and_script_are_named_with_their_lines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = job(tmp_path, "inputs: dota\n")
    (tmp_path / "src" / "entry.py").unlink()

    assert main(["doctor", str(file), "--root", str(tmp_path)]) == ExitCode.USAGE

    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("bad  job: ")]
    assert any(f"{file}:3: /inputs: there is no file or folder" in line and "'data'?" in line for line in lines)
    assert any(f"{file}:2: /entry_script" in line for line in lines)


def test_a_job_file_that_is_none_is_bad(tmp_path: Path) -> None:
    file = tmp_path / "job.yml"
    file.write_text("a: [1")

    assert [each.level for each in of_job(file)] == [Level.BAD]
    assert [each.what for each in of_job(tmp_path / "no.yml")] == [
        f"{tmp_path}/no.yml: {tmp_path}/no.yml: No such file or directory"
    ]


def test_an_output_in_a_file_is_bad(tmp_path: Path) -> None:
    reports = of_job(job(tmp_path, "inputs: data\noutput: data/one.txt/out\n"))

    assert any(each.level is Level.BAD and "is not a folder" in each.what for each in reports)


def test_an_environment_that_cannot_be_had_is_warned_of(tmp_path: Path) -> None:
    """Without a network the cause is another one, and the level the same."""
    [said] = [
        each
        for each in of_job(job(tmp_path, "inputs: data\nenvironment: {pip: ['pyyaml==0.0.0.1']}\n"))
        if each.level is not Level.OK
    ]

    assert said.level is Level.WARN
    assert "resolved" in said.what


def test_what_is_wrong_with_a_compute_is_said_with_what_to_do() -> None:
    status = ComputeStatus(at="2026-11-23T08:00:00Z", wanted=2, ready=1)
    computes = [
        Compute(name="m", type="manual"), Compute(name="s", type="slurm"),
        Compute(name="d", type="docker", status=status),
        Compute(name="e", type="docker", status=replace(status, why="no room", next_attempt="2026-11-23T08:01:00Z")),
    ]  # fmt: skip
    said = [finding_of(compute) for compute in computes]
    assert [each.level for each in said] == [Level.OK, Level.BAD, Level.OK, Level.WARN]
    assert "no provisioner has said anything of compute s" in said[1].what
    assert said[3].what == (
        "compute e (docker): 1 of its nodes ready, 2 wanted; no room; it is tried again at 2026-11-23T08:01:00Z"
    )
