"""Job specs for a preview of data, and read steps in words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from parallelrun_core.intake.reading import read_job
from parallelrun_core.spec import JobSpec

_TABLE_FILE: Final = "MLTable"


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
