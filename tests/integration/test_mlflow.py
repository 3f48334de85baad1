"""MLflow's own client, unmodified: what a script logs with it is in the run of its job."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from parallelrun_core.folder.metrics import read_metrics
from parallelrun_core.wire.states import JobState
from tests.cluster import Cluster

_PACKAGES = sorted(Path(__file__).parents[2].glob(".environments/mlflow/lib/python3*/site-packages"))

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(not _PACKAGES and "CI" not in os.environ, reason="the environment with MLflow is not there"),
]

LOGS = """
import sys

def init():
    sys.path.append(sys.argv[sys.argv.index("--packages") + 1])  # behind what the worker has itself

def run(mini_batch):
    import mlflow
    mlflow.set_experiment("petals")
    with mlflow.start_run() as run:
        mlflow.log_param("rate", 0.1)
        mlflow.log_params({"layers": 3, "kind": "small"})
        for step in range(3):
            mlflow.log_metric("loss", 1 / (step + 1), step=step)
        mlflow.log_metrics({"files": len(mini_batch), "right": 1.0})
        mlflow.set_tag("color", "green")
        mlflow.set_tags({"size": "large"})
        mlflow.log_text("what it says", "notes/one.txt")
        mlflow.log_dict({"a": 1}, "table.json")
    seen = mlflow.MlflowClient().get_run(run.info.run_id)
    assert seen.data.params["rate"] == "0.1", seen.data.params
    assert seen.data.metrics["files"] == len(mini_batch), seen.data.metrics
    assert seen.data.tags["color"] == "green", seen.data.tags
    return [run.info.run_id]
"""


def test_mlflow_itself_logs_into_the_run_of_the_job() -> None:
    with Cluster(nodes=1, slots=1) as cluster:
        job_id = cluster.submit(
            LOGS, inputs=cluster.files(1), run_max_try=1, program_arguments=f"--packages {_PACKAGES[0]}",
            run_invocation_timeout=300,
        )  # fmt: skip
        result = cluster.result(job_id)
        assert result.state is JobState.COMPLETED, result.failure
        assert cluster.output(result) == [job_id]
        logs = cluster.folder(job_id).logs
        read = read_metrics(logs)
        assert {name: metric.count for name, metric in read.metrics.items()} == {"files": 1, "loss": 3, "right": 1}
        notes = {(note.kind, note.name): note.last for note in read.notes}
        assert notes.items() >= {
            ("param", "rate"): "0.1", ("param", "layers"): "3", ("param", "kind"): "small", ("tag", "color"): "green",
            ("tag", "size"): "large",
        }.items()  # fmt: skip
        artifacts = {path.name: path.read_text() for path in (logs / "user" / "artifacts").rglob("*") if path.is_file()}
        assert artifacts["one.txt"] == "what it says"
        assert "table.json" in artifacts
