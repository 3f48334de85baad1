"""An environment with a Dockerfile, as the client sends it: the folder that it has uploaded becomes the asset's own."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from parallelrun_api.assets.shelf import AssetService as Assets
from parallelrun_api.azure.asset_store import AssetStore
from parallelrun_api.azure.blobs.names import UPLOADS
from parallelrun_api.azure.blobs.store import BlobStore
from parallelrun_api.azure.catalog import FaceAssets
from parallelrun_api.azure.face import Face
from parallelrun_core.errors import InvalidInput
from parallelrun_core.layout import code_store
from parallelrun_core.names.assets import stored_code
from parallelrun_core.storage.path_rule import Places

URI = "azureml://datastores/workspaceblobstore/paths/LocalUpload/1/docker"


@pytest.fixture
def face(tmp_path: Path) -> Face:
    root, places = tmp_path / "root", Places(roots=[])
    context = SimpleNamespace(
        assets=Assets(root, places, lambda: None), settings=SimpleNamespace(root=root, places=places)
    )
    blobs = BlobStore(root, max_bytes=1 << 20)
    return Face(
        context=cast(Any, context), token=cast(Any, None), blobs=blobs, shelf=AssetStore(root), names=cast(Any, None)
    )


def uploaded(face: Face) -> Path:
    folder = face.blobs.file(UPLOADS, "LocalUpload/1/docker")
    folder.mkdir(parents=True)
    (folder / "Dockerfile").write_text("FROM base\n")
    return folder


def test_a_dockerfile_of_the_client_is_that_of_a_registered_environment(face: Face) -> None:
    uploaded(face)
    build = {"contextUri": URI, "dockerfilePath": "Dockerfile"}
    FaceAssets(face).put("environments", "e", "1", {"build": build})

    known = face.context.assets.get("environment", "e", "1")
    path = known.content["build"]["path"]
    stored = code_store(face.context.settings.root) / stored_code(path)
    assert (stored / "Dockerfile").read_text() == "FROM base\n"
    assert known.content["build"]["dockerfile_path"] == "Dockerfile"
    shown = FaceAssets(face).get("environments", "e", "1")["properties"]["build"]
    assert shown == build


def test_a_folder_of_the_server_is_none_that_a_client_may_name(face: Face, tmp_path: Path) -> None:
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "Dockerfile").write_text("FROM base\n")
    with pytest.raises(InvalidInput, match="outside"):
        FaceAssets(face).put("environments", "e", "1", {"build": {"contextUri": str(tmp_path / "secret")}})
