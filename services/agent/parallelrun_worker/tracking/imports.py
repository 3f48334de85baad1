"""Begins the job's run of MLflow when `mlflow` is imported. Where a tracking URI is set, MLflow goes there instead."""

from __future__ import annotations

import os
import sys
from typing import Any

URI = "MLFLOW_TRACKING_URI"
_PROXIES = ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY")
_NO_PROXY = ("no_proxy", "NO_PROXY")
_HOST = "127.0.0.1"


class MlflowImport:
    """A finder for `sys.meta_path` that finds nothing: it is told of the import, and leaves."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if name == "mlflow":
            sys.meta_path[:] = [finder for finder in sys.meta_path if finder is not self]
            begin_run()

    @classmethod
    def watch(cls) -> None:
        """Begin the run with the first import."""
        sys.meta_path.insert(0, cls())


def begin_run() -> None:
    """Tell MLflow of this process where the job's run is, unless the environment says where runs are.

    A script goes on without it where there is no room for a server.
    """
    if os.environ.get(URI):
        return
    from parallelrun_worker.script_api.entry_script import EntryScript
    from parallelrun_worker.tracking.server import serve

    settings = EntryScript._settings
    if not settings.get("logs"):
        return
    try:
        port, token = serve(settings)
    except OSError as error:
        print(f"[parallelrun] what MLflow logs is not kept: {error}", file=sys.stderr)
        return
    os.environ[URI] = f"http://{_HOST}:{port}"
    os.environ["MLFLOW_TRACKING_TOKEN"] = token
    os.environ["MLFLOW_RUN_ID"] = settings["job_id"]
    for name in ("MLFLOW_TRACKING_USERNAME", "MLFLOW_TRACKING_PASSWORD"):
        os.environ.pop(name, None)
    if any(os.environ.get(name) for name in _PROXIES):
        for name in _NO_PROXY:
            os.environ[name] = ",".join(filter(None, (os.environ.get(name), _HOST)))
