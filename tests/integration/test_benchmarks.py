"""Every benchmark runs clean, at a size that shows nothing but that, and says so in its last line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.__main__ import BENCHMARKS

pytestmark = pytest.mark.integration

_ROOT = Path(__file__).parents[2]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "benchmarks", *arguments]
    return subprocess.run(command, cwd=_ROOT, capture_output=True, check=False, text=True, timeout=120)


@pytest.mark.parametrize("name", BENCHMARKS)
def test_a_benchmark_runs_clean_and_its_last_line_says_what_it_found(name: str) -> None:
    done = run("--size", "tiny", name)
    assert done.returncode == 0, done.stdout + done.stderr
    told, *figures = done.stdout.splitlines()[-1].split(" ")
    assert told == name
    assert all(figure.partition("=")[2] for figure in figures), figures


def test_a_benchmark_that_is_not_there_is_told_with_those_that_are() -> None:
    done = run("nope")
    assert done.returncode == 2
    assert "there is: packing" in done.stderr
