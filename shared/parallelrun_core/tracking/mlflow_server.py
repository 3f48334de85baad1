"""Runs at a tracking server of MLflow, by version 2.0 of its REST API, which all its releases have."""

from __future__ import annotations

import base64
import json
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from contextlib import suppress
from http.client import HTTPException
from typing import Any, Final

from parallelrun_core.untrusted.connecting import open_directly

JOB_TAG: Final = "parallelrun.job_id"
_TIMEOUT_S: Final = 5.0
_TOO_LONG: Final = 1 << 20
_NO_EXPERIMENT: Final = "RESOURCE_DOES_NOT_EXIST"
_OTHER_ANSWER: Final = "the answer is not that of a tracking server of MLflow"


class ServerRefused(OSError):
    """The server has answered with an error.

    Args:
        code: its name of the error; empty: it has none.
    """

    def __init__(self, message: str, code: str = "") -> None:
        super().__init__(message)
        self.code = code


class MlflowServer:
    """A tracking server.

    Args:
        uri: its address, without credentials.
        environment: has `MLFLOW_TRACKING_TOKEN`, or `MLFLOW_TRACKING_USERNAME` and `…_PASSWORD`, if it asks for any.

    Methods raise OSError when the server can't be reached or refuses.
    """

    def __init__(self, uri: str, environment: Mapping[str, str]) -> None:
        self._base = f"{uri.rstrip('/')}/api/2.0/mlflow"
        self._headers = {"Content-Type": "application/json", **_authorization(environment)}

    def run_of(self, job_id: str, experiment: str, name: str) -> str:
        """The id of a job's run, which is begun if there is none."""
        number = self._experiment(experiment)
        criteria = {"experiment_ids": [number], "filter": f"tags.`{JOB_TAG}` = '{job_id}'", "max_results": 1}
        runs = self._call("runs/search", criteria).get("runs")
        if isinstance(runs, list) and runs:
            return _text_in(runs[0], "info", "run_id")
        tags = [{"key": JOB_TAG, "value": job_id}, {"key": "mlflow.runName", "value": name}]
        document = {"experiment_id": number, "start_time": _now_ms(), "run_name": name, "tags": tags}
        return _text_in(self._call("runs/create", document), "run", "info", "run_id")

    def end(self, run_id: str, status: str) -> None:
        """Record how a run has ended: FINISHED, FAILED or KILLED."""
        self._call("runs/update", {"run_id": run_id, "status": status, "end_time": _now_ms()})

    def delete(self, run_id: str) -> None:
        """Remove a run that somebody else has begun, too."""
        self._call("runs/delete", {"run_id": run_id})

    def _experiment(self, name: str) -> str:
        """The id of an experiment, which is created if there is none."""
        try:
            return self._experiment_called(name)
        except ServerRefused as error:
            if error.code != _NO_EXPERIMENT:
                raise
        with suppress(ServerRefused):  # another was faster; or it can't be created, and then it isn't there
            return _text_in(self._call("experiments/create", {"name": name}), "experiment_id")
        return self._experiment_called(name)

    def _experiment_called(self, name: str) -> str:
        query = urllib.parse.urlencode({"experiment_name": name})
        return _text_in(self._call(f"experiments/get-by-name?{query}"), "experiment", "experiment_id")

    def _call(self, path: str, document: Mapping[str, Any] | None = None) -> dict[str, Any]:
        body = json.dumps(document).encode() if document is not None else None
        request = urllib.request.Request(f"{self._base}/{path}", body, self._headers)  # noqa: S310 - checked: https?:
        try:
            with open_directly(request, _TIMEOUT_S) as answer:
                payload = json.loads(answer.read(_TOO_LONG))
        except urllib.error.HTTPError as error:
            code = ""
            with error, suppress(ValueError, AttributeError, HTTPException, OSError):
                code = str(json.loads(error.read(_TOO_LONG)).get("error_code", ""))
            raise ServerRefused(f"HTTP {error.code} {code}".strip(), code) from None
        except HTTPException as error:
            raise ServerRefused(f"{_OTHER_ANSWER}: {type(error).__name__}") from error
        except ValueError as error:
            raise ServerRefused(f"{_OTHER_ANSWER}: it is not JSON") from error
        if not isinstance(payload, dict):
            raise ServerRefused(f"{_OTHER_ANSWER}: it is no object")
        return payload


def _text_in(answer: Any, *names: str) -> str:
    """Return what is below these names in an answer.

    Raises:
        ServerRefused: nothing is.
    """
    for name in names:
        if not isinstance(answer, dict) or name not in answer:
            raise ServerRefused(f"{_OTHER_ANSWER}: it has no {name!r}")
        answer = answer[name]
    return str(answer)


def _authorization(environment: Mapping[str, str]) -> dict[str, str]:
    if token := environment.get("MLFLOW_TRACKING_TOKEN"):
        return {"Authorization": f"Bearer {token}"}
    if user := environment.get("MLFLOW_TRACKING_USERNAME"):
        pair = f"{user}:{environment.get('MLFLOW_TRACKING_PASSWORD', '')}"
        return {"Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}
    return {}


def _now_ms() -> int:
    return round(time.time() * 1000)
