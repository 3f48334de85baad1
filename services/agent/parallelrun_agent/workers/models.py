"""The models that a script can ask for: that of AZUREML_MODEL_DIR, those among the inputs, and the registered ones."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, Final

from parallelrun_agent.users.worker_user import WorkerUser
from parallelrun_core.assets.catalog import Catalog
from parallelrun_core.errors import ParallelRunError
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.folder.records import JobRecord
from parallelrun_core.layout import asset_store
from parallelrun_core.spec import JobSpec
from parallelrun_core.spec.fields import ValueInput
from parallelrun_core.storage.location import is_url

MODEL_DIR: Final = "AZUREML_MODEL_DIR"
_FOLDER: Final = ".model"
_MOST_COPIED: Final = 500
_MOST_COPIED_BYTES: Final = 128 << 20
_ASKS: Final = (b"azureml.core", b"get_model_path")
"""What is in the code of a script that may ask for a registered model."""
_MOST_FILES: Final = 200
_MOST_BYTES: Final = 256 << 10
_MOST_VERSIONS: Final = 500


def view_of_script(
    folder: JobFolder, record: JobRecord, spec: JobSpec, paths: Mapping[str, str], assets: Path | None = None
) -> dict[str, Any]:
    """Return what `azureml.core` shows of the job to its script (`worker/shims/job.py`).

    Args:
        paths: of the inputs that are brought to the node.
        assets: the root folder of the registered models; by default, that of the job.
    """
    here = {name: paths.get(name, job_input.path) for name, job_input in spec.input_paths()}
    values = {name: job_input.value for name, job_input in spec.inputs.items() if isinstance(job_input, ValueInput)}
    return {
        "name": spec.name,
        "tags": spec.tags,
        "parent": record.parent.job_id if record.parent is not None else "",
        "inputs": {**values, **here},
        "models": _known_models(assets or folder.root, folder.code(record), spec, here),
    }


def model_folder(spec: JobSpec, paths: Mapping[str, str], local: Path, user: WorkerUser) -> dict[str, str]:
    """The variable AZUREML_MODEL_DIR of a job with exactly one input that is a model: a folder on this node with
    nothing in it but the model, under its own name (reference §3.7). Beside a large model of MLflow, which would have
    to be copied, may be other things. Empty for any other job.

    Raises:
        OSError: the folder can't be made.
    """
    models = [(name, job_input.path) for name, job_input in spec.input_paths() if job_input.model]
    if len(models) != 1:
        return {}
    ((name, model_path),) = models
    path = paths.get(name, model_path)
    if is_url(path):  # with mode `direct`, nothing brings it here
        return {}
    model, called = Path(path), model_path.rstrip("/").rpartition("/")[2] or "model"
    with user.acting():  # what the user of the job can't read, it doesn't get
        needs_copy = (model / "MLmodel").is_file()
        if model.name == called and (_is_alone(model) or (needs_copy and not _is_small(model))):
            return {MODEL_DIR: str(model.parent)}
    folder = local / _FOLDER
    user.make(folder)
    with user.acting():
        if not os.path.lexists(folder / called):
            if needs_copy:  # MLflow loads nothing through a link
                shutil.copytree(model, folder / called)
            else:
                (folder / called).symlink_to(model)
    return {MODEL_DIR: str(folder)}


def _is_alone(model: Path) -> bool:
    """Return whether there is nothing beside a model, and no link in what there is."""
    try:
        with os.scandir(model.parent) as scan:
            beside = list(islice(scan, 2))
        return len(beside) == 1 and not any(path.is_symlink() for path in _files(model))
    except OSError:
        return False


def _is_small(model: Path) -> bool:
    """Return whether it can be copied while leases must be renewed."""
    files = list(_files(model))
    return len(files) <= _MOST_COPIED and sum(path.stat().st_size for path in files) <= _MOST_COPIED_BYTES


def _files(model: Path) -> Iterator[Path]:
    """Return what a model consists of, as far as anybody wants to know."""
    yield model
    yield from islice((model.rglob("*") if model.is_dir() else ()), _MOST_COPIED)


def _known_models(root: Path, code: Path, spec: JobSpec, paths: Mapping[str, str]) -> list[dict[str, str]]:
    """Name, version and path of each model that `Model.get_model_path` finds: the job's own inputs first, then the
    registered ones, of each name the newest first. Those are looked up only for code that seems to ask for them.
    """
    models = []
    for name, job_input in spec.input_paths():
        asset, _, version = job_input.asset.removeprefix("azureml:").partition(":")
        if asset and job_input.model:
            models.append({"name": asset, "version": version, "path": paths[name]})
        models.append({"name": name, "version": "", "path": paths[name]})
    with suppress(OSError, ParallelRunError):  # what is missing is missed by the script, which says so
        if (asset_store(root) / "model").is_dir() and _asks_for_models(code):
            models += islice(_registered(Catalog(root)), _MOST_VERSIONS)
    return models


def _registered(catalog: Catalog) -> Iterator[dict[str, str]]:
    for name in catalog.names("model"):
        for asset in catalog.versions("model", name):
            yield {"name": name, "version": asset.version, "path": str(asset.content.get("path", ""))}


def _asks_for_models(code: Path) -> bool:
    """Return whether a file of the code names what it would ask with."""
    for path in islice(code.rglob("*.py"), _MOST_FILES):
        with path.open("rb") as file:
            text = file.read(_MOST_BYTES)
        if any(word in text for word in _ASKS):
            return True
    return False
