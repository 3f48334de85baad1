"""Each form of a location can stand in each place of a document where a path may stand, and means the same there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from parallelrun.builders.parts import Environment, Input, Output
from parallelrun.builders.v1 import ParallelRunConfig, ParallelRunStep
from parallelrun.job_file.reading import read_job_file, read_spec
from parallelrun_core.errors import InvalidInput
from parallelrun_core.intake.reading import read_job
from parallelrun_core.spec import JobSpec
from tests.conformance.documents import CONFIG, PIPELINE, changed

LONG = "azureml://subscriptions/1-2/resourcegroups/g/workspaces/w/datastores/d/paths/"
FORMS = {
    "s3://bucket/in/{}": None,
    "s3://bucket/in/**/*.jpg": None,
    "S3://bucket/With Space/{}": None,
    "gs://bucket/{}": None,
    "az://container/{}": None,
    "abfss://c@account.dfs.core.windows.net/{}": None,
    "abfs://c@account.dfs.core.windows.net/{}": None,
    "wasbs://c@account.blob.core.windows.net/{}": None,
    "https://account.blob.core.windows.net/c/{}": None,
    "https://host.example/data/{}": None,
    "azureml://datastores/d/paths/x/{}": None,
    "azureml://datastores/d/paths/x/*/[a-c]*.csv": None,
    LONG + "x/{}": "azureml://datastores/d/paths/x/{}",
    "file:///data/{}": "/data/{}",
    "azureml:/data/{}": "/data/{}",
}
"""And the path that each becomes, where it is another."""
OWN = {"name": "n", "entry_script": "s.py", "code": ".", "inputs": "in"}
Reader = Callable[[Any, Path], JobSpec]


def own(document: dict[str, Any], folder: Path) -> JobSpec:
    return read_job({**OWN, **document}, folder=folder).job


def pipeline(changes: dict[str, Any], folder: Path) -> JobSpec:
    (folder / "src").mkdir(exist_ok=True)
    return read_job(changed(PIPELINE, **changes), folder=folder).job


def v1(changes: dict[str, Any], folder: Path) -> JobSpec:
    return read_job({**CONFIG, **changes}, folder=folder).job


def assigned(field: str, url: str, folder: Path) -> JobSpec:
    file = folder / "job.yml"
    file.write_text(yaml.safe_dump({**OWN, "inputs": {"a": {"path": "in"}}}))
    return read_job_file(file, [f"{field}={url}"]).job


def built(folder: Path, url: str | Path) -> JobSpec:
    config = ParallelRunConfig(
        environment=Environment(name="e"), entry_script="s.py", error_threshold=-1, output_action="append_row",
        compute_target="c", node_count=1, source_directory=str(folder),
    )  # fmt: skip
    side = Input(path=str(url), name="model")
    out = Output(path=str(url))
    step = ParallelRunStep("step", config, [url], output="out", side_inputs=[side], arguments=["--m", side, "--o", out])
    return read_spec(step).job


PLACES: dict[str, Callable[[str, Path], str]] = {
    "own, short": lambda url, folder: own({"inputs": url}, folder).data_paths()[0],
    "own, by name": lambda url, folder: own({"inputs": {"a": {"path": url}}}, folder).data_paths()[0],
    "own, a model": lambda url, folder: dict(
        own({"inputs": {"a": "in", "m": url}, "input_data": "a"}, folder).input_paths()
    )["m"].path,
    "own, a table": lambda url, folder: own(
        {"inputs": {"a": {"path": url, "type": "mltable"}}}, folder
    ).data_paths()[0],
    "own, direct": lambda url, folder: own({"inputs": {"a": {"path": url, "mode": "direct"}}}, folder).data_paths()[0],
    "own, output": lambda url, folder: own({"output": url}, folder).output,
    "own, outputs": lambda url, folder: own({"outputs": {"o": {"path": url}}}, folder).outputs["o"].path,
    "own, rows": lambda url, folder: own(
        {"outputs": {"o": {"path": url, "type": "uri_file"}}, "append_row_to": "o"}, folder
    ).outputs["o"].path,
    "v2, pipeline": lambda url, folder: pipeline({"inputs.raw.path": url}, folder).data_paths()[0],
    "v2, output": lambda url, folder: pipeline(
        {"jobs.score.outputs.scores": {"path": url, "type": "uri_file"}}, folder
    ).outputs["scores"].path,
    "v1, input": lambda url, folder: v1({"inputs": [url]}, folder).data_paths()[0],
    "v1, side input": lambda url, folder: dict(v1({"side_inputs": {"m": url}}, folder).input_paths())["m"].path,
    "v1, output": lambda url, folder: v1({"output": url}, folder).output,
    "--set, path": lambda url, folder: assigned("inputs.a.path", url, folder).data_paths()[0],
    "--set, short": lambda url, folder: assigned("inputs.a", url, folder).data_paths()[0],
    "--set, output": lambda url, folder: assigned("output", url, folder).output,
    "builder": lambda url, folder: built(folder, url).data_paths()[0],
    "builder, a Path": lambda url, folder: built(folder, Path(url)).data_paths()[0],
    "builder, a model": lambda url, folder: dict(built(folder, url).input_paths())["model"].path,
    "builder, argument": lambda url, folder: built(folder, url).argv()[-1],
    "client, a dict": lambda url, _: read_spec({**OWN, "inputs": {"a": Path(url)}}).job.data_paths()[0],
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("place", PLACES)
def test_a_location_of_any_form_stands_where_a_path_may(place: str, form: str, tmp_path: Path) -> None:
    url = form.format("a.csv")
    if place == "own, direct" and "datastores" in form:
        with pytest.raises(InvalidInput, match="no library opens"):
            PLACES[place](url, tmp_path)
        return
    assert PLACES[place](url, tmp_path) == (FORMS[form] or form).format("a.csv")


def test_a_refused_url_with_a_secret_is_not_repeated() -> None:
    with pytest.raises(InvalidInput) as refused:
        JobSpec.parse({"entry_script": "e.py", "code": "/c", "inputs": {"a": "s3://key:hidden@bucket/k"}})
    assert "user name or a password" in str(refused.value)
    assert "hidden" not in str(refused.value)
