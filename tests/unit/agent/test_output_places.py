"""Where the outputs of a job are: names of files stay names, whatever they would mean in a web address."""

from __future__ import annotations

from pathlib import Path

import pytest

from parallelrun_agent.workers.output_places import OutputPlaces
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.spec import JobSpec
from parallelrun_core.storage.objects.address import address_of

FOLDERS = [
    ("https://acc.blob.core.windows.net/c/my%20out", "abfss://c@acc.dfs.core.windows.net", "my out"),
    ("abfss://c@acc.dfs.core.windows.net/my%20out/", "abfss://c@acc.dfs.core.windows.net", "my%20out"),
    ("s3a://bucket/out", "s3://bucket", "out"),
    ("gs://bucket", "gs://bucket", ""),
    ("azureml://datastores/d/paths/a%20b", "azureml://datastores/d/paths", "a%20b"),
]
NAMES = ["50%25.txt", "a%20b", "a b", "what?.txt", "a#b"]


@pytest.mark.parametrize("url, store, key", FOLDERS)
def test_a_file_becomes_the_object_of_its_name(url: str, store: str, key: str, tmp_path: Path) -> None:
    spec = JobSpec.parse({"entry_script": "e.py", "inputs": "/in", "output": url, "outputs": {"o": {"path": url}}})
    places = OutputPlaces(JobFolder(tmp_path, "job"), spec, tmp_path)
    (folder,) = places.urls
    above = f"{key}/" if key else ""
    assert [address_of(f"{folder.rstrip('/')}/{name}") for name in NAMES] == [
        (store, f"{above}{name}") for name in NAMES
    ]
    outputs = places.of("process000")
    assert outputs.main == outputs.paths["o"] == outputs.live[0]
