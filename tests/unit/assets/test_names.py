"""What documents may write for an asset."""

from __future__ import annotations

import pytest

from parallelrun_core.names.assets import Reference, reference_of, stored_code

IN_WORKSPACE = "subscriptions/s/resourceGroups/g/providers/Microsoft.MachineLearningServices/workspaces/w"


@pytest.mark.parametrize(
    "text, expected",
    [
        ("azureml:images:3", ("", "images", "3", "", "")),
        ("azureml:images@latest", ("", "images", "", "latest", "")),
        ("azureml:images@stable", ("", "images", "", "stable", "")),
        ("azureml:images", ("", "images", "", "latest", "")),
        (f"azureml:/{IN_WORKSPACE}/data/images/versions/3", ("data", "images", "3", "", "")),
        (f"/{IN_WORKSPACE}/codes/c-1/versions/1", ("code", "c-1", "1", "", "")),
        (f"azureml://{IN_WORKSPACE}/models/credit/labels/latest", ("model", "credit", "", "latest", "")),
        ("azureml://locations/west/workspaces/w/data/images/versions/3", ("data", "images", "3", "", "")),
        ("azureml://registries/azureml/environments/sk-1.5/versions/7", ("environment", "sk-1.5", "7", "", "azureml")),
        ("azureml://registries/r/components/c", ("component", "c", "", "latest", "r")),
    ],
)
def test_each_form_of_a_name_is_understood(text: str, expected: tuple[str, ...]) -> None:
    assert reference_of(text) == Reference(text, *expected)


@pytest.mark.parametrize(
    "text",
    ["images", "./azureml:images", "azureml:/data/x", "azureml:./x", "azureml://datastores/d/paths/x", "s3://b/x",
     "azureml:a:b:c", "azureml:", "https://x/y", "azureml:a b:1", "${{inputs.x}}", "C:/x"],
)  # fmt: skip
def test_what_names_no_asset_is_left_alone(text: str) -> None:
    assert reference_of(text) is None


def test_stored_code_is_named_by_its_hash_alone() -> None:
    assert stored_code("azureml:code/" + "a" * 64) == "a" * 64
    assert [stored_code(text) for text in ("azureml:code/../x", "azureml:code:1", "/code/" + "a" * 64, "")] == [""] * 4
