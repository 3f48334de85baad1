"""Starters for work that waits run as they are written, and say so where what they need is missing."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path

import pytest

from parallelrun.starter.kinds import kind_names

pytestmark = [
    pytest.mark.integration,
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="agents need Linux"),
]


def command(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-P", "-m", "parallelrun", *map(str, arguments)],
        capture_output=True, text=True, check=False, timeout=240,
    )  # fmt: skip


def rows(output: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in output.read_text().splitlines()]


def failed_items(job: Path) -> list[dict[str, str]]:
    with (job / "out" / "logs" / "failed_items.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def run_starter(kind: str, folder: Path, *, limit: bool) -> subprocess.CompletedProcess[str]:
    written = command("init", folder, "--kind", kind)
    assert written.returncode == 0, written.stderr
    options = ["--limit", folder / "limit.yml"] if limit else []
    words = ["run", folder / "job.yml", *options, "--output", folder / "out"]
    assert " ".join(["parallelrun", *map(str, words)]) in written.stderr, "it says how to run it"
    return command(*words)


def test_starter_llm_api_asks_about_each_row_and_names_the_one_without_text(tmp_path: Path) -> None:
    done = run_starter("llm-api", tmp_path / "ask", limit=True)

    assert done.returncode == 0, done.stderr
    answers = rows(tmp_path / "ask" / "out" / "answers.jsonl")
    assert [row["id"] for row in answers] == [number for number in range(1, 13) if number != 5]
    assert answers[0]["answer"] == "15 words, the longest is minutes."
    assert [item["Error Message"] for item in failed_items(tmp_path / "ask")] == ["ItemError: the row has no text"]
    remembered = (tmp_path / "ask" / "out" / "logs").rglob("user/remembered/*/*.jsonl")
    assert sum(len(file.read_text().splitlines()) for file in remembered) == len(answers)


def test_starter_http_sends_each_file_and_names_the_one_that_is_refused(tmp_path: Path) -> None:
    done = run_starter("http", tmp_path / "call", limit=True)

    assert done.returncode == 0, done.stderr
    answers = rows(tmp_path / "call" / "out" / "answers.jsonl")
    assert [row["file"] for row in answers] == ["ants.txt", "bees.txt", "cranes.txt", "dolphins.txt"]
    assert answers[0] == {"file": "ants.txt", "bytes": 72, "words": 15}
    (item,) = failed_items(tmp_path / "call")
    assert "nothing.txt" in item["Item"]
    assert "HTTP 422" in item["Error Message"]
    assert "/failed_items.csv; retry these: run it again with --keep" in done.stderr


def test_starter_vllm_says_that_vllm_is_missing_and_how_to_get_it(tmp_path: Path) -> None:
    done = run_starter("vllm", tmp_path / "generate", limit=False)

    assert done.returncode == 3, done.stderr
    assert "vllm can't be imported in the workers' Python: say environment: {pip: [vllm]} in the job" in done.stderr


@pytest.mark.parametrize("kind", kind_names())
def test_starter_has_a_test_of_its_script_that_passes_without_a_job(kind: str, tmp_path: Path) -> None:
    written = command("init", tmp_path / "mine", "--kind", kind)
    assert f"test it:    python -m pytest {tmp_path / 'mine' / 'src'}" in written.stderr

    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "src"],
        cwd=tmp_path / "mine", capture_output=True, text=True, check=False, timeout=240,
    )  # fmt: skip

    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout


def test_starter_without_its_limit_says_how_to_give_it(tmp_path: Path) -> None:
    command("init", tmp_path / "call", "--kind", "http")

    done = command("run", tmp_path / "call" / "job.yml", "--output", tmp_path / "out")

    assert done.returncode == 2
    assert "rate_limits" in done.stderr
    assert "--limit FILE" in done.stderr
