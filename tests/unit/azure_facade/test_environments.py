"""An environment with a Dockerfile, as the client sends it: the folder that it has uploaded becomes the asset's own."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from parallelrun_api.assets.service import AssetService as Assets
from parallelrun_api.azure import facade_assets
from parallelrun_api.azure.asset_store import AssetStore
from parallelrun_api.azure.blobs.names import UPLOADS
from parallelrun_api.azure.blobs.store import BlobStore
from parallelrun_api.azure.facade import Facade
from parallelrun_api.azure.facade_assets import FacadeAssets
from parallelrun_api.azure.whole_component import WholeComponents
from parallelrun_core.errors import InvalidInput
from parallelrun_core.layout import code_store
from parallelrun_core.names.assets import stored_code
from parallelrun_core.storage.path_rule import Places

URI = "azureml://datastores/workspaceblobstore/paths/LocalUpload/1/docker"


@pytest.fixture
def facade(tmp_path: Path) -> Facade:
    root, places = tmp_path / "root", Places(roots=[])
    context = SimpleNamespace(
        assets=Assets(root, places, lambda: None), settings=SimpleNamespace(root=root, places=places)
    )
    blobs = BlobStore(root, max_bytes=1 << 20)
    return Facade(
        context=cast(Any, context),
        token=cast(Any, None),
        blobs=blobs,
        asset_store=AssetStore(root),
        names=cast(Any, None),
    )


def uploaded(facade: Facade) -> Path:
    folder = facade.blobs.file(UPLOADS, "LocalUpload/1/docker")
    folder.mkdir(parents=True)
    (folder / "Dockerfile").write_text("FROM base\n")
    return folder


def test_a_dockerfile_of_the_client_is_that_of_a_registered_environment(facade: Facade) -> None:
    uploaded(facade)
    build = {"contextUri": URI, "dockerfilePath": "Dockerfile"}
    FacadeAssets(facade).put("environments", "e", "1", {"build": build})

    known = facade.context.assets.get("environment", "e", "1")
    path = known.content["build"]["path"]
    stored = code_store(facade.context.settings.root) / stored_code(path)
    assert (stored / "Dockerfile").read_text() == "FROM base\n"
    assert known.content["build"]["dockerfile_path"] == "Dockerfile"
    shown = FacadeAssets(facade).get("environments", "e", "1")["properties"]["build"]
    assert shown == build


def test_a_folder_of_the_server_is_none_that_a_client_may_name(facade: Facade, tmp_path: Path) -> None:
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "Dockerfile").write_text("FROM base\n")
    with pytest.raises(InvalidInput, match="outside"):
        FacadeAssets(facade).put("environments", "e", "1", {"build": {"contextUri": str(tmp_path / "secret")}})


def test_every_name_and_version_is_listed_however_many_there_are(
    facade: Facade, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(facade_assets, "_PAGE", 2)
    for number in range(5):
        facade.context.assets.create("environment", f"e{number}", "", {"pip": ["six"]}, None)
        facade.context.assets.create("environment", "e0", "", {"pip": [f"six=={number}"]}, None)
    assets = FacadeAssets(facade)
    assert assets.names("environments") == ["e0", "e1", "e2", "e3", "e4"]
    assert sorted(each["version"] for each in assets.versions("environments", "e0")) == ["1", "2", "3", "4", "5", "6"]


def test_what_others_archive_and_restore_is_shown_to_the_client_as_it_is(facade: Facade) -> None:
    assets = FacadeAssets(facade)
    assets.put("environments", "e", "1", {"condaFile": "dependencies: [six]", "isArchived": False})
    for is_archived in (True, False):
        facade.context.assets.set_archived("environment", "e", "1", is_archived=is_archived)
        (listed,) = assets.versions("environments", "e")
        assert listed["properties"]["isArchived"] is is_archived
        assert assets.get("environments", "e", "1")["properties"]["isArchived"] is is_archived


def test_a_folder_that_no_job_may_read_is_told_where_the_document_names_it(facade: Facade, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    (uploaded(facade) / "link").symlink_to(secret)
    with pytest.raises(InvalidInput) as told:
        FacadeAssets(facade).put("environments", "e", "1", {"build": {"contextUri": URI}})
    assert [problem.pointer for problem in told.value.problems] == ["/properties/build/contextUri"]


def test_a_component_without_an_end_is_refused(facade: Facade) -> None:
    reference = "/subscriptions/s/resourceGroups/r/workspaces/w/components/c/versions/1"
    itself = SimpleNamespace(asset=lambda *_: SimpleNamespace(content={"document": {"component": reference}}))
    with pytest.raises(InvalidInput, match="nested more than 12 deep"):
        WholeComponents(facade, cast(Any, itself)).document({"component": reference}, "")
