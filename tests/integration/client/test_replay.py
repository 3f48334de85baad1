"""`parallelrun job replay`: one mini-batch of a job, run again on this machine with the code that is here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from parallelrun import Client
from parallelrun.job_file.replay import OF_THE_WHOLE_JOB
from parallelrun_core.spec import JobSpec
from tests.cluster import Cluster

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(300)]

BREAKS: Final = """
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--word")
word = parser.parse_known_args()[0].word
def run(mini_batch):
    print(word, len(mini_batch), "files")
    if any("3.txt" in str(each) for each in mini_batch):
        raise ValueError("the third one")
    return [str(each) for each in mini_batch]
"""

WAITS: Final = """
import argparse, pathlib
from parallelrun.script import limit
parser = argparse.ArgumentParser()
parser.add_argument("--notes", type=pathlib.Path)
def run(mini_batch):
    with limit("site"):
        (parser.parse_known_args()[0].notes / "note.txt").write_text("seen")
    return [{"file": str(each)} for each in mini_batch]
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(api=True) as running:
        yield running


def replay(cluster: Cluster, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "parallelrun", "job", "replay", *words, "--url", cluster.api_url]
    return subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )


def test_a_mini_batch_that_failed_is_run_here_until_the_script_is_mended(cluster: Cluster, tmp_path: Path) -> None:
    script = tmp_path / "entry.py"
    script.write_text(BREAKS)
    job = cluster.submit(
        BREAKS, inputs=cluster.files(6), mini_batch_size=2, error_threshold=-1, program_arguments="--word looking"
    )
    cluster.result(job)

    broken = replay(cluster, tmp_path, job, "1")
    assert broken.returncode == 3, broken.stderr
    assert "looking 2 files" in broken.stdout
    assert "the third one" in broken.stdout + broken.stderr

    script.write_text(BREAKS.replace("if any", "if False and any"))
    mended = replay(cluster, tmp_path, job, "1")
    assert mended.returncode == 0, mended.stderr
    (output,) = [line for line in mended.stdout.splitlines() if line.startswith("output: ")]
    rows = (tmp_path / output.removeprefix("output: ")).read_text().splitlines()
    assert [Path(row).name for row in rows] == ["file-0000002.txt", "file-0000003.txt"]
    assert cluster.folder(job).generation() == 0


def test_a_replay_has_all_that_the_script_sees_and_its_rows_their_format(cluster: Cluster, tmp_path: Path) -> None:
    assert JobSpec.model_fields.keys() >= OF_THE_WHOLE_JOB
    with Client(cluster.api_url) as client:
        client.limits.create({"name": "site", "in_flight": 5})
    notes = tmp_path / "of the job"
    job = cluster.submit(
        WAITS, inputs=cluster.files(2), mini_batch_size=1, in_flight="threads", mini_batches_in_flight=2,
        rate_limits=["site"], append_row_file_name="rows.jsonl", outputs={"notes": str(notes)},
        program_arguments="--notes ${{outputs.notes}}",
    )  # fmt: skip
    cluster.result(job)
    (notes / "note.txt").write_text("of the job")

    (tmp_path / "entry.py").write_text(WAITS)
    answer = replay(cluster, tmp_path, job, "1", "--output", "again")
    assert answer.returncode == 0, answer.stderr
    assert [*json.loads((tmp_path / "again" / "rows.jsonl").read_text())] == ["file"]
    assert (tmp_path / "again" / "notes" / "note.txt").read_text() == "seen"
    assert (notes / "note.txt").read_text() == "of the job"

    with Client(cluster.api_url) as client:
        client.limits.delete("site")
    answer = replay(cluster, tmp_path, job, "1", "--output", "without")
    assert answer.returncode == 0, answer.stderr
    assert "no limit 'site' any more" in answer.stderr


def test_a_replay_without_the_code_says_where_it_was_looked_for(cluster: Cluster, tmp_path: Path) -> None:
    job = cluster.submit(BREAKS, inputs=cluster.files(2), mini_batch_size=1)
    cluster.result(job)
    answer = replay(cluster, tmp_path, job, "0")
    assert answer.returncode == 2
    assert "entry.py" in answer.stderr
    assert "--code" in answer.stderr
    assert replay(cluster, tmp_path, job, "99").returncode != 0
