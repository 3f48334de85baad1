"""`parallelrun plan`: what is said of a job before it runs is what comes of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from parallelrun.cli import main

pytestmark = pytest.mark.integration


@pytest.fixture(autouse=True)
def no_cluster(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("PARALLELRUN_URL", raising=False)


def job(folder: Path, script: str, settings: str) -> Path:
    (folder / "main.py").write_text(script)
    path = folder / "job.yml"
    path.write_text(f"{{entry_script: main.py, code: ., {settings}}}")
    return path


def said(capsys: pytest.CaptureFixture[str], *command: str) -> dict[str, object]:
    assert main(["plan", *command, "-o", "json"]) == 0
    answer: dict[str, object] = json.loads(capsys.readouterr().out)
    return answer


def test_plan_of_files_counts_them_as_the_job_would(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "files").mkdir()
    for number in range(105):
        (tmp_path / "files" / f"{number:03}").write_bytes(b"x" * 1000)
    path = job(tmp_path, "raise SystemExit('must not run')\ndef run(x): ...", "inputs: files, mini_batch_size: 10")
    plan = said(capsys, str(path), "--workers", "2")
    assert (plan["files"], plan["mini_batches"], plan["is_complete"], plan["rows"]) == (105, 11, True, 0)
    assert (plan["bytes"], plan["largest_bytes"], plan["disk_bytes_per_node"]) == (105_000, 10_000, 0)
    assert (plan["workers_per_node"], plan["most_nodes"], plan["seconds"]) == (2, 2, None)
    copied = said(capsys, str(path), "--workers", "2", "--set", "inputs.data.mode=download")
    assert copied["disk_bytes_per_node"] == 3 * 2 * 10_000


def test_plan_of_a_table_counts_its_bytes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "rows.csv").write_text("a,b\n" + "1,2\n" * 50_000)
    read = "{path: rows.csv, type: uri_file, transformations: [read_delimited: {}]}"
    path = job(tmp_path, "def run(x): ...", f"inputs: {{data: {read}}}, mini_batch_size: 50kb")
    plan = said(capsys, str(path))
    assert plan["bytes"] == 4 + 200_000
    assert plan["mini_batches"] == 4


def test_plan_with_a_trial_tells_how_long_the_job_takes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "files").mkdir()
    for number in range(200):
        (tmp_path / "files" / f"{number:03}").touch()
    script = "import time\ndef run(mini_batch):\n    time.sleep(0.05)\n    return mini_batch\n"
    path = job(tmp_path, script, "inputs: files, mini_batch_size: 1")
    plan = said(capsys, str(path), "--workers", "2", "--trial", "0.5s")
    seconds = plan["seconds"]
    assert isinstance(seconds, dict)
    assert seconds["1"] > 200 / 2 * 0.05
    assert seconds["1"] > seconds["16"], "more nodes are quicker"


def test_plan_of_what_is_not_there_is_refused_with_the_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = job(tmp_path, "def run(x): ...", "inputs: nowhere")
    assert main(["plan", str(path)]) == 2
    assert "nowhere" in capsys.readouterr().err
