"""What another job on the node does to the run of MLflow of a job, and what a job's own names lead to."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from pathlib import Path

import pytest

from parallelrun_core.folder.metrics import read_metrics
from parallelrun_core.wire.states import JobState
from tests.cluster import Cluster

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(os.getuid() != 0, reason="only root can run workers as other users"),
]

CLIENT = """
import json, os, urllib.error, urllib.request

def call(name, uri=None, token=None, **fields):
    uri = uri or os.environ["MLFLOW_TRACKING_URI"]
    headers = {"Authorization": "Bearer " + (os.environ["MLFLOW_TRACKING_TOKEN"] if token is None else token)}
    request = urllib.request.Request(uri + "/api/2.0/mlflow/" + name, json.dumps(fields).encode(), headers)
    try:
        return urllib.request.urlopen(request, timeout=60).status
    except urllib.error.HTTPError as error:
        return error.code
"""
"""A module `mlflow` that sends what MLflow's client sends, by the variables that MLflow's client reads."""
VICTIM = """
import json, os, pathlib, time, mlflow

def run(mini_batch):
    run_id, shared = os.environ["MLFLOW_RUN_ID"], pathlib.Path(os.environ["SHARED"])
    mlflow.call("runs/log-metric", run_id=run_id, key="own", value=1)
    artifacts = pathlib.Path(os.environ["LOGS"].format(run_id), "user", "artifacts", "node000", "process000")
    artifacts.mkdir()
    (artifacts / "model.txt").write_text("own")
    (shared / "ready.new").write_text(json.dumps({"uri": os.environ["MLFLOW_TRACKING_URI"], "run": run_id}))
    (shared / "ready.new").rename(shared / "ready")
    while not (shared / "over").exists():
        time.sleep(0.02)
    return [run_id]
"""
ATTACKER = """
import json, os, pathlib, time, mlflow

def run(mini_batch):
    shared = pathlib.Path(os.environ["SHARED"])
    while not (shared / "ready").exists():
        time.sleep(0.02)
    victim = json.loads((shared / "ready").read_text())
    logged = {"key": "theirs", "value": "1"}
    answers = [
        mlflow.call("runs/log-metric", run_id=victim["run"], **logged),
        mlflow.call("runs/log-parameter", victim["uri"], run_id=victim["run"], **logged),
        mlflow.call("runs/set-tag", victim["uri"], "", run_id=victim["run"], **logged),
        mlflow.call("runs/log-metric", run_id=os.environ["MLFLOW_RUN_ID"], **logged),
    ]
    folder = os.environ["LOGS"].format(victim["run"]) + "/user/"
    for name in ("metrics/node000/process009.jsonl", "artifacts/node000/process000/model.txt", "artifacts/node000/x"):
        try:
            pathlib.Path(folder + name).write_text("theirs")
        except OSError:
            continue
        answers.append(name)
    (shared / "over").touch()
    return [json.dumps(answers)]
"""


def test_another_job_reaches_a_jobs_run_neither_by_its_server_nor_by_its_files() -> None:
    shared = Path(tempfile.mkdtemp(prefix="pr-shared-", dir="/tmp"))  # which other users get through to
    shared.chmod(0o777)
    (shared / "modules").mkdir()
    (shared / "modules" / "mlflow.py").write_text(CLIENT)
    with Cluster(slots=2, worker_uids="20000-59999") as cluster:
        logs = cluster.root / "jobs" / "{}" / "logs"
        variables = {"SHARED": str(shared), "LOGS": str(logs), "PYTHONPATH": str(shared / "modules")}

        def submitted(script: str) -> str:
            return cluster.submit(script, inputs=cluster.files(1), run_max_try=1, environment_variables=variables)

        victim, attacker = submitted(VICTIM), submitted(ATTACKER)
        assert cluster.result(attacker).state is JobState.COMPLETED
        result = cluster.result(victim)
        assert cluster.output(result) == [victim]
        (answers,) = cluster.output(cluster.result(attacker))
        assert json.loads(answers) == [404, 401, 401, 200]
        read = read_metrics(cluster.folder(victim).logs)
        assert (set(read.metrics), read.notes) == ({"own"}, [])
        assert set(read_metrics(cluster.folder(attacker).logs).metrics) == {"theirs"}
        (artifact,) = cluster.folder(victim).logs.glob("user/artifacts/*/*/*")
        assert artifact.read_text() == "own"
    shutil.rmtree(shared)
