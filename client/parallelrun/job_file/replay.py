"""A job file for one mini-batch of an earlier job, to run it again apart from that job."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from parallelrun_core.answers.mini_batches import MiniBatchInputs
from parallelrun_core.errors import InvalidInput
from parallelrun_core.spec import JobSpec

INPUT: Final = "mini_batch"
"""The name of the input that stands for the files of the mini-batch."""
_KEPT: Final = frozenset({
    "entry_script", "program_arguments", "environment_variables", "environment", "inputs", "mini_batch_format",
    "mini_batches_in_flight", "output_action", "append_row_separator", "append_row_dataframe_header",
    "append_row_safe_output", "append_row_columns", "append_row_objects", "empty_output", "run_invocation_timeout",
    "progress_update_timeout", "logging_level",
})  # fmt: skip
"""Settings of the job that change what its script sees, or what becomes of the rows."""


def replay_of(document: Mapping[str, Any], inputs: MiniBatchInputs, folder: Path, code: Path) -> dict[str, Any]:
    """Return the job file of a job with this mini-batch alone, which is tried once.

    Args:
        document: of the job whose mini-batch it is.
        folder: an existing one, where the list of the files is written.
        code: the folder with the entry script.

    Raises:
        InvalidInput: the job runs a command, the entry script is not there, or the mini-batch is no list of files.
    """
    script = str(document.get("entry_script", ""))
    if not script:
        raise InvalidInput.at("/entry_script", "the job runs a command, which has no mini-batches", "run the command")
    if not (code / script).is_file():
        hint = "call it in the folder of the code, or name that with --code"
        raise InvalidInput.at("/code", f"there is no {script!r} in {str(code)!r}", hint)
    if inputs.ranges or not inputs.files:
        hint = "give `parallelrun run` the file as its input; the job's document is at `job show`"
        raise InvalidInput.at("/inputs", "this mini-batch is rows of a table, not files, and is not run apart", hint)
    if inputs.total > len(inputs.files):
        raise InvalidInput.at("/inputs", f"it has {inputs.total:,} files, and the server names {len(inputs.files):,}")
    replayed_fields = {name: value for name, value in document.items() if name in _KEPT}
    spec = JobSpec.parse({**document, "code": str(code)})
    cut = {name for name, _ in spec.data_inputs()}
    side = {
        name: value
        for name, value in replayed_fields.pop("inputs", {}).items()
        if name not in cut or f"inputs.{name}}}" in spec.program_arguments
    }
    return {
        **replayed_fields,
        "code": str(code),
        "inputs": {**side, INPUT: {"type": "mltable", "path": str(_table_of(inputs.files, folder))}},
        "input_data": [INPUT],
        "mini_batch_size": len(inputs.files),
        "run_max_try": 1,
        "error_threshold": -1,
    }


def _table_of(files: list[str], folder: Path) -> Path:
    (folder / "MLTable").write_text(yaml.safe_dump({"paths": [{"file": each} for each in files]}), encoding="utf-8")
    return folder
