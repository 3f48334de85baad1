"""What the client is told of outputs that can't be downloaded: an empty list would be a download of nothing."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest

from parallelrun_api.azure.blobs import places
from parallelrun_api.azure.blobs.names import UPLOADS
from parallelrun_api.views.folder_names import FolderNames
from parallelrun_core.errors import InvalidInput, NotFound

STORE = "s3://bucket/rows"


def listed(folder: Path, prefix: str) -> list[str]:
    """The names in the default datastore that begin so, where there is a job `mine` with the outputs `rows`, in an
    object store, and `model`."""

    def job_id(name: str) -> str:
        if name != "mine":
            raise NotFound("There is no such job.")
        return "job_1"

    facade: Any = SimpleNamespace(
        names=SimpleNamespace(job_id=job_id),
        blobs=SimpleNamespace(file=lambda container, blob: folder / container / blob, folder=folder),
        context=SimpleNamespace(folder_names=FolderNames()),
    )
    with (
        patch.object(places, "types_of", lambda *_: {"rows": "uri_file", "model": "uri_folder"}),
        patch.object(places, "output_place", lambda *_: STORE),
    ):
        return [entry.path for entry in places.files(facade, UPLOADS, prefix, "")]


def check_unknown_output(folder: Path) -> None:
    """An output that a job doesn't have is refused by its name, wherever a client looks for it."""
    for place in ("azureml", "dataset"):
        with pytest.raises(InvalidInput) as caught:
            listed(folder, f"{place}/mine/model2/")
        [problem] = caught.value.problems
        assert problem.message == "job mine has no output 'model2'"
        assert problem.hint == "its outputs are: rows, model"


def test_an_output_that_a_job_does_not_have_is_refused_by_its_name(tmp_path: Path) -> None:
    check_unknown_output(tmp_path)


def test_an_output_in_an_object_store_is_refused_with_its_place(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=f"'rows' is in an object store, at {STORE}"):
        listed(tmp_path, "azureml-outputs/mine/rows/")


def test_paths_of_users_that_look_alike_are_listed(tmp_path: Path) -> None:
    assert listed(tmp_path, "azureml/theirs/model/") == []
    (tmp_path / UPLOADS / "azureml" / "mine" / "kept").mkdir(parents=True)
    assert listed(tmp_path, "azureml/mine/kept/") == []
