"""Runs in a folder, as the file store of MLflow has them: a file of YAML for each experiment and each run.

Ids follow from names, so whoever comes first makes the same. JSON is YAML, and MLflow reads it as such.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from parallelrun_core.folder.files import replace_file, write_once

META: Final = "meta.yaml"
PARTS: Final = ("artifacts", "metrics", "params", "tags")
_STATUSES: Final = {"RUNNING": 1, "FINISHED": 3, "FAILED": 4, "KILLED": 5}


def run_in(root: Path, job_id: str, experiment: str, name: str) -> tuple[str, Path]:
    """The id of a job's run and its folder, which are made if they aren't there.

    Raises:
        OSError: the folder can't be written.
    """
    number = _experiment_in(root, experiment)
    run_id = sha256(job_id.encode()).hexdigest()[:32]
    folder = root / number / run_id
    for part in PARTS:
        (folder / part).mkdir(parents=True, exist_ok=True)
    now = round(time.time() * 1000)
    fields: dict[str, Any] = {
        "artifact_uri": (folder / "artifacts").as_uri(), "end_time": None, "entry_point_name": "",
        "experiment_id": number, "lifecycle_stage": "active", "run_id": run_id, "run_name": name, "run_uuid": run_id,
        "source_name": "", "source_type": 4, "source_version": "", "start_time": now,
        "status": _STATUSES["RUNNING"], "tags": [], "user_id": "parallelrun",
    }  # fmt: skip
    for tag, value in (("mlflow.runName", name), ("parallelrun.job_id", job_id)):
        with suppress(FileExistsError):
            write_once(folder / "tags" / tag, value.encode())
    with suppress(FileExistsError):
        write_once(folder / META, _yaml(fields))
    return run_id, folder


def end_in(root: Path, run_id: str, status: str) -> None:
    """Record how a run has ended. MLflow's own client may have written the file anew meanwhile.

    Raises:
        OSError: it can't be written.
    """
    from parallelrun_core.spec.document import load_document

    for path in root.glob(f"*/{run_id}/{META}"):
        fields = load_document(path.read_bytes())
        if isinstance(fields, dict):
            ended = {"status": _STATUSES[status], "end_time": round(time.time() * 1000)}
            replace_file(path, _yaml({**fields, **ended}))


def _experiment_in(root: Path, name: str) -> str:
    """The id of an experiment: one that MLflow has made, or else ours."""
    from parallelrun_core.spec.document import load_document

    own = str(int(sha256(name.encode()).hexdigest()[:15], 16)).rjust(18, "1")
    if not (root / own / META).exists():
        for path in root.glob(f"*/{META}"):
            with suppress(OSError, ValueError):
                known = load_document(path.read_bytes())
                if isinstance(known, dict) and str(known.get("name")) == name:
                    return path.parent.name
    folder = root / own
    folder.mkdir(parents=True, exist_ok=True)
    now = round(time.time() * 1000)
    fields = {
        "artifact_location": folder.as_uri(), "creation_time": now, "experiment_id": own, "last_update_time": now,
        "lifecycle_stage": "active", "name": name,
    }  # fmt: skip
    with suppress(FileExistsError):
        write_once(folder / META, _yaml(fields))
    return own


def _yaml(fields: Mapping[str, Any]) -> bytes:
    return json.dumps(fields, indent=1).encode() + b"\n"
