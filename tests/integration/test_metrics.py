"""Metrics of whole jobs, and their runs of MLflow, in real clusters."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import yaml

from parallelrun_core.folder.metrics import read_metrics
from parallelrun_core.wire.states import JobState
from tests.cluster import Cluster
from tests.security.test_tracking import CLIENT

pytestmark = pytest.mark.integration

KILLED_ONCE = """
import os, signal
from pathlib import Path
from azureml.core import Run
from parallelrun import log_metric

def run(mini_batch):
    for path in map(Path, mini_batch):
        log_metric("tries", path.name)
        tried = Path(os.environ["TRIED"], path.name)
        if not tried.exists():
            tried.touch()
            Run.get_context().log("killed", 1)
            os.kill(os.getpid(), signal.SIGKILL)
    Run.get_context().log("files", len(mini_batch))
    return mini_batch
"""
TELLS_ITS_RUN = """
import os, time

def run(mini_batch):
    time.sleep(0.05)  # so that both nodes have some
    names = ("AZUREML_RUN_ID", "MLFLOW_RUN_ID", "MLFLOW_TRACKING_URI", "MLFLOW_EXPERIMENT_NAME")
    return [" ".join(os.environ[name] for name in names)]
"""


def test_metrics_survive_workers_that_are_killed_right_after_them(tmp_path: Path) -> None:
    with Cluster(nodes=2, slots=1) as cluster:
        variables = {"TRIED": str(tmp_path)}
        job_id = cluster.submit(
            KILLED_ONCE, inputs=cluster.files(4), mini_batch_size=1, environment_variables=variables
        )
        result = cluster.result(job_id)
        assert result.state is JobState.COMPLETED
        metrics = read_metrics(cluster.folder(job_id).logs).metrics
        # Each try has logged, whatever became of it.
        assert {name: metric.count for name, metric in metrics.items()} == {"files": 4, "killed": 4, "tries": 8}
        assert result.metrics.keys() == {"files", "killed", "tries"}
        assert (result.metrics["files"], result.metrics["killed"]) == (1, 1)


@pytest.mark.parametrize("is_failing", [False, True])
def test_all_workers_of_a_job_have_one_run_of_mlflow_which_ends_with_it(is_failing: bool, tmp_path: Path) -> None:
    script = TELLS_ITS_RUN.replace("return", "raise ValueError" if is_failing else "return")
    runs = tmp_path / "runs"
    flags = ("--mlflow-tracking-uri", str(runs), "--mlflow-experiment", "petals")
    with Cluster(nodes=2, slots=2, agent_flags=flags) as cluster:
        job_id = cluster.submit(
            script, inputs=cluster.files(8), mini_batch_size=1, run_max_try=1, error_threshold=0 if is_failing else -1
        )
        result = cluster.result(job_id)
        (meta,) = runs.glob("*/*/meta.yaml")
        cluster.until(lambda: yaml.safe_load(meta.read_text())["end_time"] is not None, "the run has ended")
        if is_failing:
            assert yaml.safe_load(meta.read_text())["status"] == 4
            return
        assert yaml.safe_load(meta.read_text())["status"] == 3
        assert set(cluster.output(result)) == {f"{job_id} {meta.parent.name} {runs} petals"}


TRACKS = """
import mlflow, os, time

def run(mini_batch):
    time.sleep(0.05)  # so that both nodes have some
    run_id = os.environ["MLFLOW_RUN_ID"]
    assert mlflow.call("runs/create", experiment_id="0") == mlflow.call("runs/update", run_id=run_id) == 200
    mlflow.call("runs/log-metric", run_id=run_id, key="files", value=len(mini_batch))
    mlflow.call("runs/log-parameter", run_id=run_id, key="rate", value="0.1")
    return [run_id]
"""


def test_all_that_workers_log_with_mlflow_is_in_one_run_of_the_job(tmp_path: Path) -> None:
    (tmp_path / "mlflow.py").write_text(CLIENT)
    with Cluster(nodes=2, slots=2) as cluster:
        job_id = cluster.submit(
            TRACKS, inputs=cluster.files(8), mini_batch_size=1, run_max_try=1,
            environment_variables={"PYTHONPATH": str(tmp_path)},
        )  # fmt: skip
        result = cluster.result(job_id)
        assert set(cluster.output(result)) == {job_id}
        read = read_metrics(cluster.folder(job_id).logs)
        assert {name: metric.count for name, metric in read.metrics.items()} == {"files": 8}
        assert [(note.kind, note.name, note.last) for note in read.notes] == [("param", "rate", "0.1")]
        assert result.metrics == {"files": 1.0, "rate": "0.1"}


def test_the_programs_of_a_command_find_the_run_when_they_import_mlflow(tmp_path: Path) -> None:
    (tmp_path / "mlflow.py").write_text(CLIENT)
    script = (
        "import os; assert 'MLFLOW_TRACKING_URI' not in os.environ; import mlflow; "
        "assert mlflow.call('runs/log-metric', run_id=os.environ['AZUREML_RUN_ID'], key='own', value=3) == 200"
    )
    with Cluster() as cluster:
        variables = {"PYTHONPATH": str(tmp_path)}
        job_id = cluster.submit_command("python entry.py", script=script, environment_variables=variables)
        result = cluster.result(job_id)
        assert (result.state, result.metrics) == (JobState.COMPLETED, {"own": 3.0})


LOGS_AND_TRACKS = """
import os
from pathlib import Path
from azureml.core import Run
from azureml_user.parallel_run import EntryScript

def run(mini_batch):
    Run.get_context().log("files", len(mini_batch))
    Run.get_context().upload_file("outputs/note.txt", mini_batch[0])
    EntryScript().logger.warning("hello")
    (run,) = Path(os.environ["MLFLOW_TRACKING_URI"]).glob(f"*/{os.environ['MLFLOW_RUN_ID']}")
    (run / "metrics" / "loss").write_text("1 0.5 0")
    (run / "meta.yaml").write_text((run / "meta.yaml").read_text())
    return [os.getuid()]
"""


@pytest.mark.skipif(os.getuid() != 0, reason="only root can run workers as other users")
def test_workers_of_other_users_log_upload_and_track() -> None:
    with Cluster(worker_uids="20000-59999") as cluster:
        runs = cluster.home / "runs"
        runs.mkdir(mode=0o755)
        cluster.environments["node000"] = {"PARALLELRUN_MLFLOW_TRACKING_URI": str(runs)}
        cluster.kill("node000")
        cluster.start("node000")
        job_id = cluster.submit(LOGS_AND_TRACKS, inputs=cluster.files(1), run_max_try=1)
        result = cluster.result(job_id)
        assert int(cluster.output(result)[0]) >= 20000, (cluster.folder(job_id).logs / "job_result.txt").read_text()
        logs = cluster.folder(job_id).logs
        assert result.metrics == {"files": 1}
        assert [path.read_text().count("hello") for path in logs.glob("user/entry_script_log/*/*.txt")] == [1]
        assert (cluster.folder(job_id).outputs / "note.txt").exists()
        (meta,) = runs.glob("*/*/meta.yaml")
        cluster.until(lambda: yaml.safe_load(meta.read_text())["status"] == 3, "the run has ended")
