"""A job file for one mini-batch of an earlier job, to run it again apart from that job."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from parallelrun_core.answers.mini_batches import MiniBatchInputs
from parallelrun_core.errors import InvalidInput
from parallelrun_core.spec import JobSpec
from parallelrun_core.spec.fields import Output
from parallelrun_core.spec.notify import Notified

INPUT: Final = "mini_batch"
"""The name of the input that stands for the files of the mini-batch."""
OF_THE_WHOLE_JOB: Final = frozenset({
    "name", "description", "tags", "code", "additional_includes", "command", "rank_mini_batch_count", "input_data",
    "mini_batch_size", "partition_keys", "output", "compute", "instance_count", "max_concurrency_per_instance",
    "priority", "workers_per_gpu", "gpus_per_worker", "budget", "run_max_try", "fail_fast", "error_threshold",
    "mini_batch_error_threshold", "allowed_failed_percent", "speculative_execution", "look_ahead", "nice",
    "copy_logs_to_parent", "metrics_name_prefix", "push_metrics_to_parent", "resume_from", *Notified.model_fields,
})  # fmt: skip
"""Fields that mean nothing for one mini-batch on this machine; it has all others, with what the script sees of them and
what becomes of its rows."""


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
    replayed_fields = {name: value for name, value in document.items() if name not in OF_THE_WHOLE_JOB}
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
        "outputs": {name: _here(each, is_of_rows=name == spec.append_row_to) for name, each in spec.outputs.items()},
        "inputs": {**side, INPUT: {"type": "mltable", "path": str(_table_of(inputs.files, folder))}},
        "input_data": [INPUT],
        "mini_batch_size": len(inputs.files),
        "run_max_try": 1,
        "error_threshold": -1,
    }


def _here(output: Output, *, is_of_rows: bool) -> dict[str, str]:
    """Return an output of the job as one of the replay, in its own folder, so that nothing of the job is replaced."""
    name_of_rows = posixpath.basename(output.path) if is_of_rows and output.type == "uri_file" else ""
    return {"type": output.type, "file_name": name_of_rows or output.file_name}


def _table_of(files: list[str], folder: Path) -> Path:
    (folder / "MLTable").write_text(yaml.safe_dump({"paths": [{"file": each} for each in files]}), encoding="utf-8")
    return folder
