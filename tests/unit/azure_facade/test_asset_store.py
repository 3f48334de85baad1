"""Versions of assets that the client sends: the same content is the same version, however it was written."""

from pathlib import Path
from typing import Any

import pytest

from parallelrun_api.azure.asset_store import AssetStore
from parallelrun_core.errors import Conflict


def component(**fields: Any) -> dict[str, Any]:
    return {"componentSpec": {"command": "ls", "_source": "YAML.JOB", "name": "one", **fields}, "isAnonymous": True}


@pytest.mark.parametrize("fields", [{"_source": "BUILDER"}, {"name": "two"}, {"id": "azureml:x:1"}])
def test_asset_store_takes_a_component_again_that_was_written_in_another_way(
    tmp_path: Path, fields: dict[str, Any]
) -> None:
    store = AssetStore(tmp_path)
    first = store.put("components", "azureml_anonymous", "1", component())

    assert store.put("components", "azureml_anonymous", "1", component(**fields)) == first


def test_asset_store_refuses_another_content_for_a_version(tmp_path: Path) -> None:
    store = AssetStore(tmp_path)
    store.put("components", "azureml_anonymous", "1", component())

    with pytest.raises(Conflict, match="another content"):
        store.put("components", "azureml_anonymous", "1", component(command="ls -l"))
