"""`parallelrun plan`: what is said of a job before it runs is what comes of it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from parallelrun.cli import main
from tests.integration.client.fake_api import Answer, FakeApi

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


def test_plan_is_of_the_nodes_of_the_jobs_compute_that_take_work(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "rows.txt").write_text("1\n")
    cpus = len(os.sched_getaffinity(0))
    tried: list[int] = []
    monkeypatch.setattr("parallelrun.cli.plan._tried", lambda _, workers, __: tried.append(workers))
    nodes = [
        {"node": name, "state": state, "slots": slots, "compute": compute}
        for name, state, slots, compute in (
            ("a", "ready", 3, ""), ("b", "ready", 64 * cpus, "big"), ("c", "draining", 1, "big"), ("d", "lost", 2, ""),
        )
    ]  # fmt: skip
    with FakeApi() as api:
        api.on("GET", "/v1/nodes", Answer.of({"items": nodes}))
        for compute, slots in (("", 3), ("azureml:big", 64 * cpus), ("local", 3)):
            path = job(tmp_path, "def run(x): ...", f"inputs: rows.txt, compute: '{compute}'")
            plan = said(capsys, str(path), "--url", api.url, "--trial", "1s")
            assert (plan["workers_per_node"], plan["nodes"]) == (slots, 1), compute
            assert tried.pop() == min(slots, cpus)
        assert said(capsys, str(path), "--url", api.url, "--trial", "1s", "--workers", "99")["workers_per_node"] == 99
        assert tried == [99], "as was asked for"


def test_plan_of_what_is_not_there_is_refused_with_the_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = job(tmp_path, "def run(x): ...", "inputs: nowhere")
    assert main(["plan", str(path)]) == 2
    assert "nowhere" in capsys.readouterr().err


def test_plan_counts_the_files_of_groups_by_keys(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for store in (1, 2, 3):
        (tmp_path / "sales" / f"store={store}").mkdir(parents=True)
        (tmp_path / "sales" / f"store={store}" / "x.csv").write_text("1,2\n")
    keys = "extract_columns_from_partition_format: {partition_format: '/store={store}/x.csv'}"
    read = f"[read_delimited: {{header: no_header}}, {keys}]"
    path = job(
        tmp_path,
        "def run(x): ...",
        f"inputs: {{data: {{path: sales, transformations: {read}}}}}, partition_keys: [store]",
    )
    plan = said(capsys, str(path))
    assert (plan["mini_batches"], plan["files"], plan["bytes"], plan["largest_bytes"]) == (3, 3, 12, 4)
    assert main(["plan", str(path)]) == 0
    assert "3 files, about 12 B" in capsys.readouterr().out


def test_plan_says_that_mini_batches_are_numbers_only_where_they_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "empty").touch()
    for settings, words in (
        ("rank_mini_batch_count: 7", "no data: each mini-batch is a number"),
        ("inputs: files", "1 file"),
    ):
        assert main(["plan", str(job(tmp_path, "def run(x): ...", settings))]) == 0
        assert f"input:         {words}\n" in capsys.readouterr().out


def test_plan_of_a_pipeline_plans_each_step_whose_data_are_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "files").mkdir()
    for number in range(6):
        (tmp_path / "files" / str(number)).write_text("x")
    job(tmp_path, "def run(x): ...", "inputs: files")
    task = "{type: run_function, code: ., entry_script: main.py, environment: azureml:some@latest}"
    step = f"type: parallel, input_data: '${{{{inputs.files}}}}', mini_batch_size: '2', task: {task}"
    (tmp_path / "pipeline.yml").write_text(
        "{type: pipeline, settings: {default_compute: azureml:local}, jobs: {"
        "copy: {type: command, command: 'true', environment: azureml:some@latest, outputs: {all: {type: uri_folder}}},"
        f"first: {{inputs: {{files: {{type: uri_folder, path: ./files}}}}, {step}}},"
        f"later: {{inputs: {{files: '${{{{parent.jobs.copy.outputs.all}}}}'}}, {step}}}}}}}"
    )
    steps = said(capsys, str(tmp_path / "pipeline.yml"))["steps"]
    assert isinstance(steps, dict)
    assert (steps["first"]["mini_batches"], steps["first"]["files"]) == (3, 6)
    assert steps["copy"] is steps["later"] is None
    assert main(["plan", str(tmp_path / "pipeline.yml")]) == 0
    words = capsys.readouterr().out
    assert "step copy:\n  a command" in words
    assert "step later:\n  not known yet" in words
