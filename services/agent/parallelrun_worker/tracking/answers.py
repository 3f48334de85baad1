"""The calls of MLflow's client, versions 2.0 and 3.0 of its REST API, and what each does to the job's run.

There is one run, and one experiment, by whatever name: a run that a script begins beside it is the same. What has
another place here, such as registered models, is not kept; a script that asks for it goes on, and is told once.
"""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

if TYPE_CHECKING:
    from parallelrun_worker.script_api.metrics import MetricLog

_ROOT = re.compile(r"/api/[23]\.0/mlflow/")
_EXPERIMENT = "0"
_NAME = "mlflow.runName"
_MAX_POINTS = 1000
"""Of each metric, the last ones that a script can ask for."""
_MAX_NAMES = 10_000
_INSTEAD = {
    "registered-models": "`parallelrun model create` registers a model, also from the output of a job",
    "model-versions": "`parallelrun model create` registers a model, also from the output of a job",
    "logged-models": "the files of the model are among the artifacts",
    "traces": "docs/monitoring.md says how a script sends traces",
}


class Refused(Exception):
    """A call has no answer.

    Args:
        code: MLflow's name of the error.
    """

    def __init__(self, message: str, code: str = "RESOURCE_DOES_NOT_EXIST", status: int = 404) -> None:
        super().__init__(message)
        self.code = code
        self.status = status


class JobRun:
    """The run of a job, as one of its processes sees it.

    Args:
        settings: of the worker.
        artifacts: the folder for artifacts, which MLflow's client writes by itself.
        metrics: where metrics, params and tags are recorded.
    """

    def __init__(self, settings: Mapping[str, Any], artifacts: str, metrics: MetricLog) -> None:
        job = settings.get("job") or {}
        self._id = str(settings["job_id"])
        self._artifact_uri = "file://" + quote(artifacts)
        self._metrics = metrics
        self._experiment_name = os.environ.get("MLFLOW_EXPERIMENT_NAME") or str(job.get("experiment") or "Default")
        self._started_ms = _now_ms()
        self._points: dict[str, list[dict[str, Any]]] = {}
        self._params: dict[str, str] = {}
        self._tags: dict[str, str] = {_NAME: str(job.get("name") or self._id)}
        self._models: dict[str, dict[str, Any]] = {}
        self._registered: dict[str, list[dict[str, Any]]] = {}
        """The versions of models that this process has registered, by name: it may ask for them again."""
        self._told: set[str] = set()

    def answer(self, method: str, path: str, fields: Mapping[str, Any]) -> Any:
        """The answer to a call.

        Raises:
            Refused: it asks for something that isn't here.
        """
        match = _ROOT.match(path)
        if match is None:
            raise Refused(f"A job's run has no {path[:200]!r}.")
        call = path[match.end() :].strip("/")
        handler = _CALLS.get(call)
        if handler is not None:
            return handler(self, fields)
        return self._other(method, call, fields)

    # The experiment and the run

    def _experiment(self, fields: Mapping[str, Any]) -> Any:
        name = str(fields.get("experiment_name") or fields.get("name") or self._experiment_name)
        return {
            "experiment": {
                "experiment_id": _EXPERIMENT, "name": name, "artifact_location": self._artifact_uri,
                "lifecycle_stage": "active",
            }
        }  # fmt: skip

    def _experiments(self, fields: Mapping[str, Any]) -> Any:
        return {"experiments": [self._experiment({})["experiment"]]}

    def _new_experiment(self, fields: Mapping[str, Any]) -> Any:
        return {"experiment_id": _EXPERIMENT}

    def _begin(self, fields: Mapping[str, Any]) -> Any:
        for tag in _list_in(fields, "tags"):
            self._tag({**tag, "run_id": self._id})
        return self._run({"run_id": self._id})

    def _run(self, fields: Mapping[str, Any]) -> Any:
        self._check(fields)
        last = [points[-1] for points in self._points.values()]
        data = {"metrics": last, "params": _pairs(self._params), "tags": _pairs(self._tags)}
        return {"run": {"info": self._info(), "data": data, "inputs": {}}}

    def _runs(self, fields: Mapping[str, Any]) -> Any:
        return {"runs": [self._run({"run_id": self._id})["run"]]}

    def _update(self, fields: Mapping[str, Any]) -> Any:
        self._check(fields)
        if fields.get("run_name"):
            self._tag({"key": _NAME, "value": fields["run_name"], "run_id": self._id})
        return {"run_info": self._info()}

    def _info(self) -> dict[str, Any]:
        return {
            "run_id": self._id, "run_uuid": self._id, "experiment_id": _EXPERIMENT, "run_name": self._tags[_NAME],
            "status": "RUNNING", "start_time": self._started_ms, "artifact_uri": self._artifact_uri,
            "lifecycle_stage": "active", "user_id": "",
        }  # fmt: skip

    def _check(self, fields: Mapping[str, Any]) -> None:
        run_id = str(fields.get("run_id") or fields.get("run_uuid") or "")
        if run_id != self._id:
            raise Refused(f"There is no run {run_id[:80]!r} here: a job reads and writes its own run, {self._id}.")

    # What is logged

    def _metric(self, fields: Mapping[str, Any]) -> Any:
        self._check(fields)
        name, value = str(fields.get("key", "")), fields.get("value")
        at_ms, step = _whole(fields.get("timestamp")) or _now_ms(), _whole(fields.get("step"))
        try:
            number = float(value)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            raise Refused(f"The metric {name[:80]!r} is no number.", "INVALID_PARAMETER_VALUE", 400) from None
        self._metrics.log(name, number, step, time_s=at_ms / 1000)
        if name in self._points or len(self._points) < _MAX_NAMES:
            points = self._points.setdefault(name, [])
            points.append({"key": name, "value": value, "timestamp": at_ms, "step": step})
            del points[:-_MAX_POINTS]
        return {}

    def _param(self, fields: Mapping[str, Any]) -> Any:
        self._check(fields)
        self._note("param", self._params, fields)
        return {}

    def _tag(self, fields: Mapping[str, Any]) -> Any:
        self._check(fields)
        self._note("tag", self._tags, fields)
        return {}

    def _untag(self, fields: Mapping[str, Any]) -> Any:
        self._check(fields)
        name = str(fields.get("key", ""))
        if name != _NAME and self._tags.pop(name, None) is not None:
            self._metrics.note("tag", name, None)
        return {}

    def _note(self, kind: str, values: dict[str, str], fields: Mapping[str, Any]) -> None:
        name, value = str(fields.get("key", "")), str(fields.get("value", ""))
        if values.get(name) != value and (name in values or len(values) < _MAX_NAMES):
            values[name] = value
            self._metrics.note(kind, name, value)

    def _batch(self, fields: Mapping[str, Any]) -> Any:
        self._check(fields)
        for key, record in (("metrics", self._metric), ("params", self._param), ("tags", self._tag)):
            for each in _list_in(fields, key):
                record({**each, "run_id": self._id})
        return {}

    def _history(self, fields: Mapping[str, Any]) -> Any:
        self._check(fields)
        return {"metrics": self._points.get(str(fields.get("metric_key", "")), [])}

    def _nothing(self, fields: Mapping[str, Any]) -> Any:
        return {}

    # What has no place here

    def _other(self, method: str, call: str, fields: Mapping[str, Any]) -> Any:
        subject, _, rest = call.partition("/")
        if subject == "logged-models" and (method != "GET" or rest):
            return self._logged_model(method, rest, fields)
        is_registry = subject in ("registered-models", "model-versions")
        if method == "GET" and not (is_registry and (rest == "search" or fields.get("name") in self._registered)):
            raise Refused(f"A job's run has no {subject[:80]!r}, and so nothing of {call[:200]!r}.")
        if method != "GET":
            self._tell(subject if subject in _INSTEAD else call)
        return self._registry(f"{subject}/{rest}", fields) if is_registry else {}

    def _registry(self, call: str, fields: Mapping[str, Any]) -> Any:
        """Models that this process has registered, and their versions, for all calls alike; nobody else sees them."""
        name = str(fields.get("name", ""))
        versions = self._registered.get(name, [])
        if call.endswith("/create") and (name in self._registered or len(self._registered) < _MAX_NAMES):
            self._registered[name] = versions
        if call == "model-versions/create" and len(versions) < _MAX_POINTS:
            about = {key: fields[key] for key in ("source", "run_id", "model_id") if fields.get(key)}
            versions.append({"name": name, "version": str(len(versions) + 1), "status": "READY", **about})
        number = str(fields.get("version", ""))
        version = next((each for each in versions if each["version"] == number), versions[-1] if versions else {})
        if call.endswith("/search"):
            every_version = [each for of_name in self._registered.values() for each in of_name]
            return {"registered_models": [{"name": each} for each in self._registered], "model_versions": every_version}
        return {"registered_model": {"name": name}, "model_version": version, "model_versions": versions[-1:]}

    def _logged_model(self, method: str, rest: str, fields: Mapping[str, Any]) -> Any:
        """A model that is logged: files among the artifacts, which the client writes by itself."""
        model_id = rest.partition("/")[0]
        if not rest:
            self._tell("logged-models")
            name = str(fields.get("name") or "model")
            model_id = f"m-{len(self._models):04}"
            info = {
                "model_id": model_id, "experiment_id": _EXPERIMENT, "name": name, "source_run_id": self._id,
                "artifact_uri": f"{self._artifact_uri}/{quote(_plain_name(name))}", "status": "LOGGED_MODEL_READY",
                "creation_timestamp_ms": _now_ms(), "last_updated_timestamp_ms": _now_ms(),
            }  # fmt: skip
            self._models[model_id] = {"model": {"info": info, "data": {}}}
        if rest != "search" and model_id not in self._models:
            raise Refused(f"There is no model {model_id[:80]!r} here.")
        if rest == "search":
            return {"models": [each["model"] for each in self._models.values()]}
        return self._models[model_id]

    def _tell(self, subject: str) -> None:
        """Say once that something is not kept."""
        if subject not in self._told:
            self._told.add(subject)
            instead = _INSTEAD.get(subject, "docs/job-spec.md says what a job's run has")
            print(f"[parallelrun] MLflow: {subject[:80]!r} is not kept; {instead}", file=sys.stderr)


_CALLS: Mapping[str, Callable[[JobRun, Mapping[str, Any]], Any]] = {
    "experiments/create": JobRun._new_experiment,
    "experiments/get": JobRun._experiment,
    "experiments/get-by-name": JobRun._experiment,
    "experiments/list": JobRun._experiments,
    "experiments/search": JobRun._experiments,
    "experiments/set-experiment-tag": JobRun._nothing,
    "metrics/get-history": JobRun._history,
    "runs/create": JobRun._begin,
    "runs/delete-tag": JobRun._untag,
    "runs/get": JobRun._run,
    "runs/log-batch": JobRun._batch,
    "runs/log-inputs": JobRun._nothing,
    "runs/log-metric": JobRun._metric,
    "runs/log-model": JobRun._nothing,
    "runs/log-parameter": JobRun._param,
    "runs/outputs": JobRun._nothing,
    "runs/search": JobRun._runs,
    "runs/set-tag": JobRun._tag,
    "runs/update": JobRun._update,
}


def _list_in(fields: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    values = fields.get(key)
    return [each for each in values if isinstance(each, dict)] if isinstance(values, list) else []


def _pairs(values: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"key": key, "value": value} for key, value in values.items()]


def _plain_name(name: str) -> str:
    """A name that is one folder."""
    return re.sub(r"[^\w.-]", "_", name).strip(".") or "model"


def _whole(value: Any) -> int:
    try:
        return int(value)
    except (TypeError, ValueError):
        return 0


def _now_ms() -> int:
    return round(time.time() * 1000)
