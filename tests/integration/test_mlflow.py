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

VARIANTS = """
import os, pathlib, sys
sys.path.append(sys.argv[1])
import mlflow
from mlflow import MlflowClient

client = MlflowClient()

# What is logged without a run, and in runs within runs, is in the one run.
mlflow.log_metric("early", 1)
mlflow.end_run()
with mlflow.start_run(run_name="outer", tags={"of": "outer"}, description="it says") as outer:
    with mlflow.start_run(nested=True, run_name="inner") as inner:
        mlflow.log_metric("inner", 2, step=7)
    mlflow.log_metric("after", 3)
    assert inner.info.run_id == outer.info.run_id == os.environ["AZUREML_RUN_ID"]
    assert mlflow.active_run().info.run_id == outer.info.run_id
try:
    with mlflow.start_run():
        raise KeyError("their own")
except KeyError:
    pass

# By the client's lower interface, in another experiment.
number = mlflow.create_experiment("another")
assert mlflow.get_experiment_by_name("another").experiment_id == number
assert mlflow.get_experiment(number).experiment_id == number
assert [each.experiment_id for each in client.search_experiments()] == [number]
run = client.create_run(number, tags={"color": "red"})
client.log_metric(run.info.run_id, "low", 4.0)
client.log_param(run.info.run_id, "depth", 3)
client.log_batch(run.info.run_id, params=[mlflow.entities.Param("width", "9")])
client.set_tag(run.info.run_id, "color", "green")
client.update_run(run.info.run_id, name="another name")
client.set_terminated(run.info.run_id, "FAILED")
assert [each.value for each in client.get_metric_history(run.info.run_id, "low")] == [4.0]
assert client.search_runs([number])[0].data.params["depth"] == "3"
client.delete_tag(run.info.run_id, "of")

# Artifacts: a file, a folder, texts; they are listed and read back.
pathlib.Path("made/below").mkdir(parents=True)
pathlib.Path("made/one.txt").write_text("one")
pathlib.Path("made/below/two.txt").write_text("two")
pathlib.Path("made/MLmodel").write_text("flavors: {}")
mlflow.log_artifact("made/one.txt", "alone")
mlflow.log_artifacts("made", "all")
mlflow.log_text("three", "three.txt")
assert sorted(each.path for each in client.list_artifacts(run.info.run_id)) == ["all", "alone", "three.txt"]
assert mlflow.artifacts.load_text(f"runs:/{run.info.run_id}/three.txt") == "three"
there = mlflow.artifacts.download_artifacts(run_id=run.info.run_id, artifact_path="all/below/two.txt")
assert pathlib.Path(there).read_text() == "two"

# What has no place here breaks no script that asks for it by the way.
mlflow.autolog()
mlflow.set_experiment_tag("a", "b")
mlflow.register_model(f"runs:/{run.info.run_id}/all", "registered")
client.set_registered_model_alias("registered", "best", "1")
mlflow.delete_run(run.info.run_id)
mlflow.end_run()
with mlflow.start_run():
    mlflow.log_metric("last", 5)

@mlflow.trace
def traced(value):
    return value + 1

assert traced(1) == 2
print("to its end")
"""


def test_whatever_a_command_does_with_mlflow_is_in_its_run_and_breaks_nothing() -> None:
    with Cluster(nodes=1, slots=1) as cluster:
        job_id = cluster.submit_command(f"python entry.py {_PACKAGES[0]}", script=VARIANTS)
        result = cluster.result(job_id, timeout_s=300)
        logs = cluster.folder(job_id).logs
        printed = "".join(path.read_text() for path in sorted((logs / "user").rglob("*.txt")))
        assert result.state is JobState.COMPLETED, printed
        assert "to its end" in printed
        read = read_metrics(logs)
        assert {name: metric.points[-1].value for name, metric in read.metrics.items()}.items() >= {
            "early": 1, "inner": 2, "after": 3, "low": 4, "last": 5,
        }.items()  # fmt: skip
        notes = {(note.kind, note.name): note.last for note in read.notes}
        assert notes.items() >= {
            ("param", "depth"): "3", ("param", "width"): "9", ("tag", "color"): "green",
        }.items()  # fmt: skip
        assert ("tag", "of") not in notes
        artifacts = {path.name: path.read_text() for path in (logs / "user" / "artifacts").rglob("*") if path.is_file()}
        assert artifacts.items() >= {"one.txt": "one", "two.txt": "two", "three.txt": "three"}.items()


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
