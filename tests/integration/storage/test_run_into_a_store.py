"""`parallelrun run` with outputs in a store: nothing of others is replaced unless the user says so."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.storage.conftest import Bucket, Store
from tests.object_servers import Moto, ObjectServer

pytestmark = pytest.mark.integration
SCRIPT = """
import os, sys

def run(mini_batch):
    out = sys.argv[sys.argv.index("--to") + 1]
    for path in mini_batch:
        with open(os.path.join(out, os.path.basename(path)), "w") as file:
            file.write("made of it")
    return [f"{VERSION} {os.path.basename(path)}" for path in mini_batch]
"""
JOB = """
name: into
entry_script: entry.py
code: code
inputs: in
mini_batch_size: 1
outputs: {made: {}}
program_arguments: --to ${{outputs.made}}
append_row_file_name: rows.csv
"""


@pytest.fixture(scope="module")
def server(store: Store) -> ObjectServer:
    return store(Moto)


@pytest.fixture
def job(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    for name in "abc":
        (tmp_path / "in" / f"{name}.txt").touch()
    (tmp_path / "code").mkdir()
    (tmp_path / "job.yml").write_text(JOB)
    return tmp_path


def ran(job: Path, output: str, *options: str, version: int = 1) -> subprocess.CompletedProcess[str]:
    (job / "code" / "entry.py").write_text(f"VERSION = {version}\n{SCRIPT}")
    command = [sys.executable, "-m", "parallelrun", "run", "job.yml", "--processes", "1", "--output", output, *options]
    return subprocess.run(command, cwd=job, capture_output=True, text=True, timeout=120, check=False)


def rows(bucket: Bucket) -> list[str]:
    return bucket.content("out/rows.csv").decode().splitlines()


def test_a_run_puts_its_outputs_into_the_store_and_its_logs_here(job: Path, bucket: Bucket) -> None:
    first = ran(job, bucket.url("out"))
    assert first.returncode == 0, first.stderr
    assert rows(bucket) == ["1 a.txt", "1 b.txt", "1 c.txt"]
    assert bucket.content("out/made/b.txt") == b"made of it"
    printed = first.stdout.splitlines()
    assert f"output: {bucket.url('out/rows.csv')}" in printed
    assert f"output made: {bucket.url('out/made')}" in printed
    (logs,) = job.glob("into-*/logs")
    assert bucket.url("out/rows.csv") in (logs / "job_result.txt").read_text()

    again = ran(job, bucket.url("out"), version=2)
    assert again.returncode != 0
    assert "rows.csv is there already" in again.stderr
    assert "--overwrite" in again.stderr
    assert rows(bucket)[0] == "1 a.txt"

    replaced = ran(job, bucket.url("out"), "--overwrite", version=3)
    assert replaced.returncode == 0, replaced.stderr
    assert rows(bucket) == ["3 a.txt", "3 b.txt", "3 c.txt"]
    names = {key.removeprefix(f"{bucket.prefix}/out/") for key in list(bucket.keys())}
    assert names == {"rows.csv", "made/a.txt", "made/b.txt", "made/c.txt"}


@pytest.mark.parametrize("output, why", [
    ("https://example.com/out", "can't be written to"), ("hdfs://h/out", "not supported"),
])  # fmt: skip
def test_what_cannot_be_written_to_is_refused_at_once(job: Path, output: str, why: str) -> None:
    refused = ran(job, output)
    assert refused.returncode != 0
    assert why in refused.stderr
    assert not list(job.glob("into-*")), "nothing was begun"


def test_a_file_that_scripts_write_cannot_be_in_a_store(job: Path, bucket: Bucket) -> None:
    (job / "job.yml").write_text(JOB.replace("made: {}", "made: {type: uri_file}"))
    refused = ran(job, bucket.url("out"))
    assert refused.returncode != 0
    assert "type: uri_folder" in refused.stderr
    assert bucket.keys() == []


def test_an_input_is_not_written_into(job: Path, bucket: Bucket) -> None:
    bucket.put("in")
    refused = ran(job, bucket.url("out"), "--set", f"inputs={bucket.url()}")
    assert refused.returncode != 0
    assert "part of the job's own input" in refused.stderr
