"""The program `parallelrun` ends as its command line says, and imports what its command needs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = (sys.executable, "-m", "parallelrun")


def ended(*line: str, stdout: int = subprocess.PIPE) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*PROGRAM, *line], stdout=stdout, stderr=subprocess.PIPE, text=True, timeout=60, check=False)


def test_the_exit_code_and_all_of_the_output_come_out() -> None:
    assert ended("--version").returncode == 0
    assert ended("run", "--help").stdout.rstrip().endswith("Show this message and exit.")
    assert ended("no-such-command").returncode == 1


def test_a_command_reads_no_signatures_of_others() -> None:
    read = "import sys, typer.main as t; read = t.get_command_from_info; names = []; "
    count = "t.get_command_from_info = lambda **k: names.append(k['command_info'].name) or read(**k); "
    run = "from parallelrun.cli.app import run; run([*sys.argv[1:], '--help']); print(names)"

    def names(*line: str) -> str:
        return subprocess.check_output([sys.executable, "-c", read + count + run, *line], text=True).splitlines()[-1]

    assert names("run") == "['run']"
    assert "'list'" in names("job")
    assert "'run'" not in names("job")
    assert "'run'" in names()
    assert "'run'" in names("no-such-command")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_what_cannot_be_written_is_an_error() -> None:
    full = os.open("/dev/full", os.O_WRONLY)
    try:
        done = ended("--version", stdout=full)
    finally:
        os.close(full)
    assert done.returncode == 1
    assert "No space left on device" in done.stderr


@pytest.mark.parametrize(
    "module", ["parallelrun_api.main", "parallelrun_master.main", "parallelrun.embedded.local_run"]
)
def test_the_readers_of_azures_forms_are_imported_when_needed(module: str) -> None:
    ask = f"import sys, {module}; print([name for name in sys.modules if name.startswith('parallelrun_core.azure.v')])"
    assert subprocess.check_output([sys.executable, "-c", ask], text=True).strip() == "[]"


def test_services_are_started_before_the_client_is_imported() -> None:
    ask = "import sys, parallelrun.embedded.local_run; print('httpx' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", ask], text=True).strip() == "False"
