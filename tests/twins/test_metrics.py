"""What the proofs about metrics and runs of MLflow find when a rule is broken."""

from __future__ import annotations

from pathlib import Path

import pytest

from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.tracking import mlflow_run
from parallelrun_core.tracking.mlflow_run import TrackedRun
from parallelrun_worker.metrics import MetricLog
from tests.twins.sabotage import always, expect_failure
from tests.unit.tracking import test_mlflow_run as runs
from tests.unit.worker import test_metrics as metrics


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "metrics" / "process000.jsonl"


def test_metrics_that_wait_for_the_end_of_the_worker_are_found(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MetricLog, "_write", always(True))
    monkeypatch.setattr(MetricLog, "_sync", always(None))
    with expect_failure():
        metrics.test_a_metric_is_in_the_file_at_once_and_no_file_is_there_before(MetricLog(str(path)), path)


def test_metrics_without_a_limit_are_found(
    path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(MetricLog, "_is_in_time", always(True))
    with expect_failure():
        metrics.test_too_many_at_once_are_left_out_and_counted(MetricLog(str(path)), path, monkeypatch, capsys)


def test_a_run_of_mlflow_for_each_node_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def last_wins(folder: JobFolder, run: TrackedRun) -> TrackedRun:
        return run

    monkeypatch.setattr(mlflow_run, "_record", last_wins)
    folder = JobFolder(tmp_path, "job_00000000000000000000")
    folder.path.mkdir(parents=True)
    with expect_failure():
        runs.test_nodes_that_ask_at_once_have_the_same_run(folder)
