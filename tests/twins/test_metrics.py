"""What the proofs about metrics and runs of MLflow find when a rule is broken."""

from __future__ import annotations

import hmac
from contextlib import contextmanager
from pathlib import Path

import pytest

from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.tracking import mlflow_run
from parallelrun_core.tracking.mlflow_run import TrackedRun
from parallelrun_worker.script_api.metrics import MetricLog
from parallelrun_worker.tracking import answers
from parallelrun_worker.tracking.answers import JobRun
from tests.twins.sabotage import always, expect_failure
from tests.unit.tracking import test_mlflow_run as runs
from tests.unit.worker import test_metrics as metrics
from tests.unit.worker import test_tracking as tracking


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


def test_a_run_that_answers_for_other_jobs_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(JobRun, "_check", always(None))
    with contextmanager(tracking.begun)(tmp_path, monkeypatch) as tracked, expect_failure():
        tracking.test_another_run_is_refused_in_words(tracked)


def test_a_run_that_asks_for_no_token_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hmac, "compare_digest", always(True))
    with contextmanager(tracking.begun)(tmp_path, monkeypatch) as tracked, expect_failure():
        tracking.test_who_does_not_show_the_token_is_turned_away(tracked, "x")


def test_a_model_whose_name_leads_elsewhere_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "_plain_name", str)
    with contextmanager(tracking.begun)(tmp_path, monkeypatch) as tracked, expect_failure():
        tracking.test_a_model_that_is_logged_is_among_the_artifacts(tracked)
