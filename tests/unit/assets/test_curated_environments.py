"""The site file of the documentation stands for Azure's common curated environments."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from parallelrun.cli import main
from parallelrun_core.assets.site import Site, read_site
from parallelrun_core.names.assets import reference_of

PAGE = Path(__file__).parents[3] / "docs" / "curated-environments.md"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    blocks = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL)
    file = tmp_path_factory.mktemp("site") / "curated.yml"
    file.write_text(blocks[0])
    return read_site(file)


@pytest.mark.parametrize(
    "name,package",
    [
        ("azureml://registries/azureml/environments/sklearn-1.5/labels/latest", "scikit-learn"),
        ("azureml:AzureML-sklearn-1.0-ubuntu20.04-py38-cpu@latest", "scikit-learn"),
        ("azureml://registries/azureml/environments/mlflow-model-inference/versions/3", "mlflow"),
        ("azureml://registries/azureml/environments/acpt-pytorch-2.2-cuda12.1/labels/latest", "torch"),
        ("azureml:AzureML-pytorch-1.10-ubuntu18.04-py38-cuda11-gpu:4", "torch"),
        ("azureml://registries/azureml/environments/tensorflow-2.16-cuda11/labels/latest", "tensorflow"),
        ("azureml:AzureML-responsibleai-0.20-ubuntu20.04-py38-cpu@latest", "responsibleai"),
    ],
)
def test_a_curated_environment_has_its_packages(site: Site, name: str, package: str) -> None:
    reference = reference_of(name)
    assert reference is not None
    assert package in site.stand_in("environment", reference)["pip"]


def test_a_cluster_is_not_started_with_a_site_file_that_is_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    file = tmp_path / "site.yml"
    file.write_text("environmnts: {}\n")
    assert main(["up", "--site", str(file), "--root", str(tmp_path / "root")]) != 0
    assert "environmnts" in capsys.readouterr().err
    assert not (tmp_path / "root").exists()
