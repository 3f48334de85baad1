"""Every benchmark runs clean, at a size that shows nothing but that, and says so in its last line."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks import table
from benchmarks.__main__ import BENCHMARKS, main
from benchmarks.rivals import compare

pytestmark = pytest.mark.integration

_ROOT = Path(__file__).parents[2]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "benchmarks", *arguments]
    return subprocess.run(command, cwd=_ROOT, capture_output=True, check=False, text=True, timeout=300)


@pytest.mark.parametrize("name", BENCHMARKS)
def test_a_benchmark_runs_clean_and_its_last_line_says_what_it_found(name: str) -> None:
    done = run("--size", "tiny", name)
    assert done.returncode == 0, done.stdout + done.stderr
    told, *figures = done.stdout.splitlines()[-1].split(" ")
    assert told == name
    assert all(figure.partition("=")[2] for figure in figures), figures


def test_a_benchmark_that_fails_is_reported_and_the_others_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fails = SimpleNamespace(main=lambda size: 1 / 0)
    works = SimpleNamespace(main=lambda size: {"seconds": 1})
    monkeypatch.setattr("benchmarks.__main__.import_module", lambda name: fails if name.endswith("noop") else works)
    monkeypatch.setattr(sys, "argv", ["benchmarks", "--size", "tiny", "noop", "folder"])
    assert main() == 1
    said = capsys.readouterr().out.splitlines()
    assert "noop failed=1" in said
    assert said[-1] == "folder seconds=1"


def test_two_runs_at_once_do_not_write_into_the_same_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    lines, folders = table._lines, list[Path]()

    def in_the_middle(*arguments: Any) -> Iterator[str]:
        if not folders:
            folders.append(tmp_path)
            folders.append(table.table("plain.csv", 100))
        return lines(*arguments)

    monkeypatch.setattr(table, "_lines", in_the_middle)
    folder = table.table("plain.csv", 100)
    assert folders == [tmp_path, folder]
    assert len((folder / "plain.csv").read_text().splitlines()) == 1 + table._ROWS
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]


def test_a_rival_does_the_same_work_and_is_checked(tmp_path: Path) -> None:
    found = compare.measure("joblib_loky", "noop", tmp_path, 100, python=Path(sys.executable))
    assert found["wall_s"] > 0
    with pytest.raises(RuntimeError, match="No such file"):
        compare.measure("joblib_loky", "hashing", tmp_path, 100, python=Path(sys.executable))


def test_rivals_that_are_not_installed_are_left_out_and_how_to_get_them_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(compare, "ENVIRONMENT", tmp_path)
    assert not compare.available()
    assert "make bench-rivals" in capsys.readouterr().out


def test_a_benchmark_that_is_not_there_is_told_with_those_that_are() -> None:
    done = run("nope")
    assert done.returncode == 2
    assert "there is: packing" in done.stderr
