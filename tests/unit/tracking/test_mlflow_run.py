"""Each job has one run of MLflow, whoever asks first, and the run ends as the job does."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import yaml

from parallelrun_core.errors import ParallelRunError
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.tracking.mlflow_run import begin_run, checked_uri, end_run, variables_of
from parallelrun_core.wire.states import JobState
from tests.unit.tracking.tracking_server import tracking_server


@pytest.fixture
def folder(tmp_path: Path) -> JobFolder:
    folder = JobFolder(tmp_path, "job_00000000000000000000")
    folder.path.mkdir(parents=True)
    return folder


def begin(folder: JobFolder, uri: str, **environment: str) -> str:
    return begin_run(folder, uri, experiment="petals", name="score many", environment=environment)[0]


def test_a_server_is_asked_for_one_run_and_told_how_the_job_has_ended(folder: JobFolder) -> None:
    with tracking_server() as server:
        assert [begin(folder, server.uri), begin(folder, server.uri)] == ["run0", "run0"]
        folder.layout.tracked_run.unlink()  # whoever has begun it died before it was recorded
        assert begin(folder, server.uri) == "run0"
        end_run(folder, JobState.CANCELED, {}, "")
        assert list(server.experiments) == ["petals"]
        (run,) = server.runs.values()
        assert (run["status"], run["name"], run["job_id"]) == ("KILLED", "score many", folder.job_id)


def test_nodes_that_ask_at_once_have_the_same_run(folder: JobFolder) -> None:
    with tracking_server() as server:
        server.experiments["petals"] = "7"
        server.hides_runs = True
        with ThreadPoolExecutor(8) as nodes:
            ids = list(nodes.map(lambda _: begin(folder, server.uri), range(8)))
        assert len(set(ids)) == 1
        assert [run_id for run_id, run in server.runs.items() if run["status"] == "RUNNING"] == ids[:1]
        assert {run["experiment"] for run in server.runs.values()} == {"7"}


def test_what_answers_as_no_tracking_server_does_refuses(folder: JobFolder) -> None:
    for answer in (
        b'{"experiment": {}}', b'{"experiment": {"experiment_id": "7"}, "runs": [{}]}', b'{"experiment": "7"}',
        b'{"experiment": {"experiment_id": "7"}}', b"{}", b"[]", b"<html>",
    ):  # fmt: skip
        for length in (len(answer), len(answer) + 1):
            with tracking_server() as server:
                server.always = f"HTTP/1.0 200 OK\r\nContent-Length: {length}\r\n\r\n".encode() + answer
                with pytest.raises(OSError, match="not that of a tracking server"):
                    begin(folder, server.uri)


def test_credentials_are_those_that_mlflow_reads(folder: JobFolder) -> None:
    with tracking_server(token="quiet") as server:
        with pytest.raises(OSError, match="401"):
            begin(folder, server.uri)
        assert begin(folder, server.uri, MLFLOW_TRACKING_TOKEN="quiet") == "run0"
        assert "quiet" not in folder.layout.tracked_run.read_text()


def test_credentials_are_told_to_no_server_that_only_the_job_folder_names(folder: JobFolder) -> None:
    credentials = {"MLFLOW_TRACKING_TOKEN": "quiet"}
    with tracking_server(token="quiet") as server:
        begin(folder, server.uri, **credentials)
        with pytest.raises(OSError, match="401"):
            end_run(folder, JobState.COMPLETED, credentials, "https://tracking.example")
        end_run(folder, JobState.COMPLETED, credentials, server.uri)
        assert [run["status"] for run in server.runs.values()] == ["FINISHED"]


def test_a_folder_has_what_the_file_store_of_mlflow_has(folder: JobFolder, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    run_id = begin(folder, str(runs))
    assert begin(folder, runs.as_uri()) == run_id
    (experiment,) = (path for path in runs.iterdir())
    assert yaml.safe_load((experiment / "meta.yaml").read_text())["name"] == "petals"
    run = experiment / run_id
    assert {path.name for path in run.iterdir()} == {"meta.yaml", "artifacts", "metrics", "params", "tags"}
    assert (run / "tags" / "mlflow.runName").read_text() == "score many"
    meta = yaml.safe_load((run / "meta.yaml").read_text())
    assert (meta["run_id"], meta["experiment_id"], meta["status"]) == (run_id, experiment.name, 1)
    end_run(folder, JobState.FAILED, {}, "")
    meta = yaml.safe_load((run / "meta.yaml").read_text())
    assert (meta["status"], meta["lifecycle_stage"]) == (4, "active")
    assert meta["end_time"] >= meta["start_time"]


def test_an_experiment_that_mlflow_has_made_is_used(folder: JobFolder, tmp_path: Path) -> None:
    (tmp_path / "runs" / "42").mkdir(parents=True)
    (tmp_path / "runs" / "42" / "meta.yaml").write_text("name: petals\nexperiment_id: '42'\n")
    run_id = begin(folder, str(tmp_path / "runs"))
    assert (tmp_path / "runs" / "42" / run_id / "meta.yaml").is_file()


def test_what_only_mlflow_understands_is_left_to_it(folder: JobFolder) -> None:
    assert begin(folder, "sqlite:////tmp/runs.db") == ""
    end_run(folder, JobState.COMPLETED, {}, "")
    assert variables_of("databricks://x", "petals", "") == {
        "MLFLOW_TRACKING_URI": "databricks://x", "MLFLOW_EXPERIMENT_NAME": "petals",
    }  # fmt: skip


def test_an_address_has_no_credentials_and_is_whole() -> None:
    for uri in ("https://anna:secret@host", "http://token@host", "runs"):
        with pytest.raises(ValueError, match=r"credentials|absolute"):
            checked_uri(uri)


def _fifo(path: Path) -> None:
    os.mkfifo(path)


def _link(path: Path) -> None:
    (path.parents[3] / "secret").write_text('{"secret": "s3"}')
    path.symlink_to(path.parents[3] / "secret")


def _second_name(path: Path) -> None:
    (path.parents[3] / "secret").write_text('{"secret": "s3"}')
    path.hardlink_to(path.parents[3] / "secret")


def _too_much(path: Path) -> None:
    path.write_text('{"secret": "s3"}' + " " * (1 << 20))


def _endless(path: Path) -> None:
    path.symlink_to("/dev/zero")


@pytest.mark.parametrize("put", [_fifo, _link, _second_name, _too_much, _endless])
def test_what_a_script_puts_in_place_of_a_run_is_neither_waited_for_nor_read(
    put: Callable[[Path], None], folder: JobFolder, tmp_path: Path
) -> None:
    runs = tmp_path / "runs"
    run_id = begin(folder, str(runs))
    (path,) = runs.glob(f"*/{run_id}/meta.yaml")
    path.unlink()
    put(path)
    before = path.lstat()
    with ThreadPoolExecutor(1) as leader, pytest.raises((OSError, ParallelRunError)):
        leader.submit(end_run, folder, JobState.COMPLETED, {}, "").result(timeout=20)
    assert path.lstat() == before


def test_a_node_that_comes_later_writes_nothing_where_workers_may_write(folder: JobFolder, tmp_path: Path) -> None:
    runs, elsewhere = tmp_path / "runs", tmp_path / "elsewhere"
    run_id = begin(folder, str(runs))
    (run,) = runs.glob(f"*/{run_id}")
    (run / "tags").rename(run / "away")
    elsewhere.mkdir()
    (run / "tags").symlink_to(elsewhere)
    assert begin(folder, str(runs)) == run_id
    assert not list(elsewhere.iterdir())
    assert [path.name for path in run.parent.iterdir() if path.is_dir()] == [run_id]
