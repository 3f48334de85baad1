"""Stores what images are built of: the folder of a job's Dockerfile, as code is stored."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from parallelrun_core.assets.contents import keep_context
from parallelrun_core.code.context import CONTEXT, without_dockerfile
from parallelrun_core.code.dockerfile_check import check_dockerfile
from parallelrun_core.errors import InvalidInput
from parallelrun_core.layout import code_store
from parallelrun_core.names.assets import code_called, stored_code
from parallelrun_core.spec import JobSpec
from parallelrun_core.storage.path_rule import PathRule
from parallelrun_core.storage.stores import storage_of


def with_context_stored(root: Path, rule: PathRule, spec: JobSpec, placed: dict[str, Any]) -> dict[str, Any]:
    """The fields that say on which nodes a job runs, with the name of what their image is built of, durable by now.

    Args:
        placed: these fields, as `Selection.place` has them.

    Raises:
        InvalidInput: there is no such folder, jobs may not use it, or it has no such Dockerfile.
    """
    environment = placed.get("environment") or spec.environment.model_dump(mode="json")
    build = environment["build"]
    if not build or not placed["compute"]:
        return placed
    path, dockerfile = build["path"], build["dockerfile_path"]
    if stored := stored_code(path):
        _check_stored(code_store(root) / stored, dockerfile)
        return placed
    trouble = storage_of(path).place_trouble(path, rule, pattern=())  # all that is in it is read
    if trouble is not None:
        raise InvalidInput.at(CONTEXT.pointer, trouble.message, trouble.hint)
    snapshot = keep_context(root, Path(path), dockerfile, rule)
    _check_stored(code_store(root) / snapshot, dockerfile)
    return {**placed, "environment": {**environment, "build": {**build, "path": code_called(snapshot)}}}


def _check_stored(folder: Path, dockerfile: str) -> None:
    if not folder.is_dir():
        message = "what the image is built of is not stored here"
        raise InvalidInput.at(CONTEXT.pointer, message, "send it with the command line, or name its folder")
    if not (folder / dockerfile).is_file():
        raise without_dockerfile(dockerfile)
    check_dockerfile((folder / dockerfile).read_bytes(), dockerfile)
