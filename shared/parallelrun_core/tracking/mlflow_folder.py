"""Runs in a folder, as the file store of MLflow has them: a file of YAML for each experiment and each run.

Ids follow from names, so whoever comes first makes the same. JSON is YAML, and MLflow reads it as such.
"""

from __future__ import annotations

import errno
import json
import os
import secrets
import shutil
import stat
import time
from collections.abc import Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from parallelrun_core.durable_files import replace_file, write_once
from parallelrun_core.errors import NotFound, ParallelRunError
from parallelrun_core.untrusted.paths import open_beneath

META: Final = "meta.yaml"
PARTS: Final = ("artifacts", "metrics", "params", "tags")
_NAME: Final = "mlflow.runName"
_JOB: Final = "parallelrun.job_id"
FILES: Final = (META, f"tags/{_NAME}", f"tags/{_JOB}")
"""The folders and files that a run has from its begin."""
_MAX_BYTES: Final = 1 << 20
_STATUSES: Final = {"RUNNING": 1, "FINISHED": 3, "FAILED": 4, "KILLED": 5}


def run_in(root: Path, job_id: str, experiment: str, name: str) -> tuple[str, Path]:
    """The id of a job's run and its folder, which are made if they aren't there.

    Raises:
        OSError: the folder can't be written.
    """
    number = _experiment_in(root, experiment)
    run_id = sha256(job_id.encode()).hexdigest()[:32]
    folder = root / number / run_id
    if os.path.lexists(folder):  # and workers may have written there
        return run_id, folder
    now = round(time.time() * 1000)
    fields: dict[str, Any] = {
        "artifact_uri": (folder / "artifacts").as_uri(), "end_time": None, "entry_point_name": "",
        "experiment_id": number, "lifecycle_stage": "active", "run_id": run_id, "run_name": name, "run_uuid": run_id,
        "source_name": "", "source_type": 4, "source_version": "", "start_time": now,
        "status": _STATUSES["RUNNING"], "tags": [], "user_id": "parallelrun",
    }  # fmt: skip
    beside = root / number / f".{run_id}.{secrets.token_hex(6)}"
    try:
        for part in PARTS:
            (beside / part).mkdir(parents=True)
        for file, data in zip(FILES, (_yaml(fields), name.encode(), job_id.encode()), strict=True):
            write_once(beside / file, data)
        with suppress(FileExistsError):
            beside.rename(folder)
    except OSError as error:
        if error.errno != errno.ENOTEMPTY:  # another was first
            raise
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return run_id, folder


def end_in(root: Path, run_id: str, status: str) -> None:
    """Record how a run has ended. MLflow's own client may have written the file anew meanwhile, and a script may have
    put anything in its place.

    Raises:
        OSError: it can't be written.
        ParallelRunError: it is no plain file, or too large.
    """
    from parallelrun_core.untrusted.document import load_document

    for path in root.glob(f"*/{run_id}/{META}"):
        fields = load_document(_content(root, path))
        if isinstance(fields, dict):
            ended = {"status": _STATUSES[status], "end_time": round(time.time() * 1000)}
            replace_file(path, _yaml({**fields, **ended}))


def _experiment_in(root: Path, name: str) -> str:
    """The id of an experiment: one that MLflow has made, or else ours."""
    from parallelrun_core.untrusted.document import load_document

    new_id = str(int(sha256(name.encode()).hexdigest()[:15], 16)).rjust(18, "1")
    if not (root / new_id / META).exists():
        for path in root.glob(f"*/{META}"):
            with suppress(OSError, ValueError, ParallelRunError):
                experiment = load_document(_content(root, path))
                if isinstance(experiment, dict) and str(experiment.get("name")) == name:
                    return path.parent.name
    folder = root / new_id
    folder.mkdir(parents=True, exist_ok=True)
    now = round(time.time() * 1000)
    fields = {
        "artifact_location": folder.as_uri(), "creation_time": now, "experiment_id": new_id, "last_update_time": now,
        "lifecycle_stage": "active", "name": name,
    }  # fmt: skip
    with suppress(FileExistsError):
        write_once(folder / META, _yaml(fields))
    return new_id


def is_plain(status: os.stat_result) -> bool:
    return stat.S_ISREG(status.st_mode) and status.st_nlink == 1


def _content(root: Path, path: Path) -> bytes:
    fd = open_beneath(root, str(path.relative_to(root)))
    with open(fd, "rb") as file:
        status = os.fstat(fd)
        if not is_plain(status) or status.st_size > _MAX_BYTES:
            raise NotFound(f"{path} is no plain file of at most {_MAX_BYTES:,} bytes.")
        return file.read(_MAX_BYTES)


def _yaml(fields: Mapping[str, Any]) -> bytes:
    return json.dumps(fields, indent=1).encode() + b"\n"
