"""Documents that are right, for tests that spoil one thing in them."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

from parallelrun.job_file.reading import check_paths
from parallelrun_core.errors import InvalidInput
from parallelrun_core.intake.reading import Reading, read_job
from parallelrun_core.spec import JobSpec

PIPELINE: dict[str, Any] = {
    "$schema": "https://azuremlschemas.azureedge.net/latest/pipelineJob.schema.json",
    "type": "pipeline",
    "display_name": "score many",
    "settings": {"default_compute": "azureml:cluster"},
    "inputs": {"raw": {"type": "uri_folder", "path": "./data"}, "count": 4, "word": "red"},
    "outputs": {"all_scores": {"type": "uri_file"}},
    "jobs": {
        "score": {
            "type": "parallel",
            "inputs": {"files": "${{parent.inputs.raw}}", "model": {"path": "./data", "mode": "download"}},
            "outputs": {"scores": "${{parent.outputs.all_scores}}"},
            "input_data": "${{inputs.files}}",
            "mini_batch_size": "5",
            "task": {
                "type": "run_function",
                "code": "./src",
                "entry_script": "score.py",
                "environment": "azureml:curated@latest",
                "program_arguments": "--model ${{inputs.model}}",
                "append_row_to": "${{outputs.scores}}",
            },
        }
    },
}

COMPONENT: dict[str, Any] = {
    "$schema": "https://azuremlschemas.azureedge.net/latest/parallelComponent.schema.json",
    "type": "parallel",
    "name": "score_many",
    "version": "1",
    "inputs": {
        "files": {"type": "uri_folder"},
        "model": {"type": "uri_folder", "mode": "download", "optional": True},
        "limit": {"type": "integer", "default": 3, "min": 1, "max": 9},
    },
    "outputs": {"scores": {"type": "uri_file"}},
    **{
        name: copy.deepcopy(PIPELINE["jobs"]["score"][name])
        for name in ("input_data", "mini_batch_size", "task")
    },
}  # fmt: skip
COMPONENT["task"]["program_arguments"] = "$[[--model ${{inputs.model}}]] --limit ${{inputs.limit}}"

CONFIG: dict[str, Any] = {
    "parallel_run_config": {
        "entry_script": "score.py",
        "source_directory": "./src",
        "environment": {"name": "e", "image": "some/image"},
        "error_threshold": 10,
        "output_action": "Append_Row",
        "compute_target_name": "cluster",
        "node_count": 2,
        "mini_batch_size": "10",
    },
    "inputs": ["./data"],
}

SCRIPT = "def run(mini_batch):\n    return mini_batch\n"


def make_folder(folder: Path) -> Path:
    """A folder with what these documents name."""
    (folder / "src").mkdir()
    (folder / "src" / "score.py").write_text(SCRIPT)
    (folder / "data").mkdir()
    (folder / "data" / "one.txt").touch()
    return folder


def changed(document: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """A copy with values put at paths such as `jobs.score.task.code`; None with DELETE takes something out."""
    found = copy.deepcopy(document)
    for path, value in changes.items():
        *folders, last = path.split(".")
        at = found
        for name in folders:
            at = at.setdefault(name, {})
        if value is DELETE:
            at.pop(last, None)
        else:
            at[last] = value
    return found


DELETE = object()


def read(document: object, folder: Path) -> Reading:
    """Read a document as the command line does."""
    reading = read_job(copy.deepcopy(document), folder=folder)
    for _, job in reading.jobs():
        with job.locating_problems():
            check_paths(job.job)
    return reading


def spec_of(document: dict[str, Any], folder: Path, **changes: Any) -> JobSpec:
    """The job that a document with these changes is."""
    return read(changed(document, **changes), folder).job


def problems(document: object, folder: Path) -> dict[str, str]:
    """What is wrong with a document, by the pointer of the field."""
    try:
        read(document, folder)
    except InvalidInput as error:
        return {problem.pointer: str(problem) for problem in error.problems}
    return {}
