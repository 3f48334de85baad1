"""What MLflow's client is answered in the process of a script, by the calls that its releases send."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from parallelrun_core.folder.metrics import last_values, read_metrics
from parallelrun_worker.script_api.metrics import MetricLog
from parallelrun_worker.tracking import imports, server

JOB = "job_00000000000000000001"


class Tracked(NamedTuple):
    """A process with a run."""

    port: int
    token: str
    logs: Path

    def call(self, method: str, path: str, fields: Any = None, *, token: str | None = None) -> tuple[int, Any]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        body = fields if isinstance(fields, bytes) else json.dumps(fields).encode() if fields is not None else None
        headers = {"Authorization": f"Bearer {self.token if token is None else token}"}
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())

    def post(self, call: str, **fields: Any) -> Any:
        status, answer = self.call("POST", f"/api/2.0/mlflow/{call}", {"run_id": JOB, **fields})
        assert status == 200, answer
        return answer

    def get(self, call: str) -> Any:
        status, answer = self.call("GET", f"/api/2.0/mlflow/{call}")
        assert status == 200, answer
        return answer


@pytest.fixture
def tracked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Tracked]:
    yield from begun(tmp_path, monkeypatch)


def begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Tracked]:
    logs = tmp_path / "logs"
    log = MetricLog(str(logs / "user" / "metrics" / "node000" / "process000.jsonl"))
    monkeypatch.setattr(MetricLog, "_instance", log)
    settings = {"job_id": JOB, "node": "node000", "process": "process000", "logs": str(logs), "job": {"name": "petals"}}
    yield Tracked(*server.serve(settings), logs)
    log.close()


def test_what_a_script_logs_with_mlflow_is_the_jobs(tracked: Tracked) -> None:
    tracked.post("runs/log-parameter", key="rate", value="0.1")
    tracked.post("runs/log-metric", key="loss", value=0.5, timestamp=1_700_000_000_000, step=3)
    tracked.post("runs/log-metric", key="loss", value="NaN", timestamp=1_700_000_001_000, step=4)
    tracked.post("runs/set-tag", key="color", value="green")
    tracked.post("runs/set-tag", key="gone", value="soon")
    tracked.post("runs/delete-tag", key="gone")
    metrics = [{"key": "kept", "value": 1, "timestamp": 1}]
    tracked.post("runs/log-batch", metrics=metrics, params=[{"key": "depth", "value": "7"}], tags=[])
    read = read_metrics(tracked.logs)
    assert [(point.time, point.value, point.step) for point in read.metrics["loss"].points] == [
        (1_700_000_000.0, 0.5, 3), (1_700_000_001.0, "nan", 4),
    ]  # fmt: skip
    notes = [(note.kind, note.name, note.last) for note in read.notes]
    assert notes == [("param", "depth", "7"), ("param", "rate", "0.1"), ("tag", "color", "green")]
    assert last_values(tracked.logs) == {"kept": 1, "loss": "nan", "depth": "7", "rate": "0.1", "color": "green"}


def test_a_script_reads_back_what_it_has_logged(tracked: Tracked) -> None:
    tracked.post("runs/log-metric", key="loss", value=0.5, timestamp=5, step=1)
    tracked.post("runs/log-metric", key="loss", value=0.25, timestamp=6, step=2)
    tracked.post("runs/log-parameter", key="rate", value="0.1")
    run = tracked.get(f"runs/get?run_id={JOB}")["run"]
    assert run["data"]["metrics"] == [{"key": "loss", "value": 0.25, "timestamp": 6, "step": 2}]
    assert run["data"]["params"] == [{"key": "rate", "value": "0.1"}]
    assert (run["info"]["run_name"], run["info"]["status"]) == ("petals", "RUNNING")
    assert [each["value"] for each in tracked.get(f"metrics/get-history?run_id={JOB}&metric_key=loss")["metrics"]] == [
        0.5, 0.25,
    ]  # fmt: skip
    folder = tracked.logs / "user" / "artifacts" / "node000" / "process000"
    assert run["info"]["artifact_uri"] == folder.as_uri()


def test_a_job_has_one_run_whatever_its_script_begins(tracked: Tracked) -> None:
    for _ in range(2):
        run = tracked.post("runs/create", experiment_id="0", tags=[{"key": "mlflow.runName", "value": "nested"}])["run"]
        assert run["info"]["run_id"] == JOB
        tracked.post("runs/update", status="FINISHED", end_time=1)
    number = tracked.get("experiments/get-by-name?experiment_name=theirs")["experiment"]["experiment_id"]
    assert number == run["info"]["experiment_id"] == tracked.post("experiments/create", name="x")["experiment_id"]


def test_another_run_is_refused_in_words(tracked: Tracked) -> None:
    for call in ("runs/log-metric", "runs/log-parameter", "runs/set-tag", "runs/log-batch", "runs/update"):
        fields = {"run_id": "job_00000000000000000002", "key": "x", "value": "1"}
        status, answer = tracked.call("POST", f"/api/2.0/mlflow/{call}", fields)
        assert (status, answer.get("error_code")) == (404, "RESOURCE_DOES_NOT_EXIST")
        assert "a job reads and writes its own run" in answer["message"]
    assert not tracked.logs.exists()


@pytest.mark.parametrize("token", ["", "x", "x" * 100_000, "ü"])
def test_who_does_not_show_the_token_is_turned_away(tracked: Tracked, token: str) -> None:
    if len(token) > 65_536:
        assert http_status(tracked, token) in (401, 431)
    else:
        fields = {"run_id": JOB, "key": "x", "value": "1"}
        assert tracked.call("POST", "/api/2.0/mlflow/runs/log-metric", fields, token=token)[0] == 401
    assert not tracked.logs.exists()
    tracked.get("experiments/list")


def http_status(tracked: Tracked, token: str) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", tracked.port, timeout=30)
    connection.request("GET", "/", headers={"Authorization": f"Bearer {token}"})
    return connection.getresponse().status


def test_what_has_no_place_here_is_told_once_and_breaks_nothing(
    tracked: Tracked, capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in range(2):
        assert tracked.post("model-versions/create", name="m")["model_version"]["status"] == "READY"
        assert tracked.post("registered-models/create", name="m")["registered_model"] == {"name": "m"}
    assert tracked.call("PATCH", "/api/2.0/mlflow/some/new/call", {}) == (200, {})
    told = capsys.readouterr().err.splitlines()
    assert len(told) == 3
    assert all("is not kept" in line for line in told)
    assert "`parallelrun model create`" in told[0]
    assert tracked.get("registered-models/get?name=m")["registered_model"] == {"name": "m"}
    assert tracked.get("model-versions/get?name=m&version=1")["model_version"]["version"] == "1"
    assert [each["version"] for each in tracked.get("model-versions/search")["model_versions"]] == ["1", "2"]
    status, answer = tracked.call("GET", "/api/2.0/mlflow/registered-models/get?name=other")
    assert (status, "has no 'registered-models'" in answer["message"]) == (404, True)


def test_a_model_that_is_logged_is_among_the_artifacts(tracked: Tracked) -> None:
    model = tracked.post("logged-models", experiment_id="0", name="../../../evil/model")["model"]["info"]
    artifacts = (tracked.logs / "user" / "artifacts" / "node000" / "process000").as_uri()
    name = model["artifact_uri"].removeprefix(f"{artifacts}/")
    assert name == "_.._.._evil_model"
    finished = tracked.call("PATCH", f"/api/2.0/mlflow/logged-models/{model['model_id']}", {})[1]
    assert finished["model"]["info"] == model
    assert tracked.call("GET", "/api/2.0/mlflow/logged-models/m-1")[0] == 404


@pytest.mark.parametrize("body", [b"{", b"[" * 100_000, b"\xff", b"[]", b"7"])
def test_a_body_that_is_no_call_is_refused(tracked: Tracked, body: bytes) -> None:
    status, answer = tracked.call("POST", "/api/2.0/mlflow/runs/log-metric", body)
    assert status in (400, 404), answer
    tracked.get("experiments/list")


def test_a_metric_that_is_no_number_is_refused(tracked: Tracked) -> None:
    status, answer = tracked.call("POST", "/api/2.0/mlflow/runs/log-metric", {"run_id": JOB, "key": "x", "value": "y"})
    assert (status, answer["error_code"]) == (400, "INVALID_PARAMETER_VALUE")


def test_a_tracking_uri_of_the_jobs_own_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(imports.URI, "https://example.com")
    monkeypatch.setattr(server, "serve", lambda *_: pytest.fail("a server was started"))
    imports.begin_run()
