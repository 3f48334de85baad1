"""The preview of data: what `run()` would get, found out on this machine by the code that leaders and workers have for
it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import msgspec

from parallelrun.errors import ClusterFailed
from parallelrun_core.intake.reading import read_job
from parallelrun_core.spec import JobSpec

_WAIT_S: Final = 120.0
_TABLE_FILE: Final = "MLTable"


class InputPreview(msgspec.Struct, kw_only=True, frozen=True):
    """The preview of one input before anything runs."""

    name: str
    path: str
    kind: str = "files"
    """`files`: run() gets paths; otherwise the kind of table of which it gets rows."""
    read: dict[str, Any] | None = None
    """The read step that was found out; None if the job has one, or the files look like no table."""
    files: int = 0
    """Files that were listed."""
    mini_batches: int = 0
    is_complete: bool = False
    """All files were listed; otherwise there are more."""
    first_files: list[str] = []
    columns: list[dict[str, str]] = []
    """`name` and `type` of each."""
    rows: list[dict[str, str | None]] = []
    """The first rows, each value as Python writes it; None is null."""
    sampled_from: list[str] = []
    """Files whose first rows have decided on the types."""
    encodings: dict[str, int] = {}
    """Number of of the first files have each."""
    compressions: dict[str, int] = {}
    warnings: list[str] = []
    errors: list[str] = []
    """Why the input, or a part of it, can't be read."""


def preview(spec: JobSpec, rows: int = 20, *, guesses: bool = False, timeout_s: float = _WAIT_S) -> list[InputPreview]:
    """Show the first rows of each input that a job cuts.

    Args:
        rows: how many of each table.
        guesses: find out how files are read that no read step is given for.

    Raises:
        ClusterFailed: the process that reads them has failed, or took longer than `timeout_s` seconds.
    """
    request = {"spec": spec.model_dump(mode="json"), "rows": rows, "guesses": guesses}
    command = [sys.executable, "-P", "-m", "parallelrun_master.planning.preview"]
    try:
        done = subprocess.run(
            command, input=json.dumps(request).encode(), capture_output=True, timeout=timeout_s, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise ClusterFailed(f"the data were not read in {timeout_s:g} s") from error
    if done.returncode:
        raise ClusterFailed(f"the data can't be shown: {done.stderr.decode(errors='replace').strip()[-2000:]}")
    return msgspec.json.decode(done.stdout, type=list[InputPreview])


def spec_for(path: str, read: dict[str, Any] | None = None) -> JobSpec:
    """Make a job spec whose only input is this path, for a preview of it.

    Raises:
        InvalidInput: no job can have such an input.
    """
    is_table_file = Path(path).name == _TABLE_FILE or (Path(path) / _TABLE_FILE).is_file()
    job_input: dict[str, Any] = {"path": path, "type": "mltable" if is_table_file else "uri_folder"}
    if read:
        job_input["transformations"] = [read]
    return read_job({"entry_script": "preview.py", "inputs": {"data": job_input}}, folder=Path.cwd()).job


def in_one_line(step: dict[str, Any]) -> str:
    """Write a step as YAML on one line."""
    return ", ".join(f"{name}: {json.dumps(options or {}, ensure_ascii=False)}" for name, options in step.items())
