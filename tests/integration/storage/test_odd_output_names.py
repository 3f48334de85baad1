"""Odd names that a script gives its files in an output are the names of their objects, in each store."""

from __future__ import annotations

import pytest

from parallelrun_core.wire.states import JobState
from tests.cluster import Cluster
from tests.integration.storage.conftest import Bucket

pytestmark = [pytest.mark.integration, pytest.mark.slow]

NAMES = [
    "a b", "[1].csv", "a%20b", "a+b", "c#d", "e&f=g", "e?f", "é", "\U0001f600", ".hidden", "_SUCCESS", "~x", "i'j\"k",
    "{l}", "deep/er/a b",
]  # fmt: skip
SCRIPT = f"""
import os
from azureml_user.parallel_run import EntryScript
def run(mini_batch):
    for name in {NAMES!r}:
        path = os.path.join(EntryScript().output_dir, "odd", name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            file.write(name)
    return ["done"]
"""


def test_odd_names_of_files_in_an_output_are_the_names_of_their_objects(bucket: Bucket) -> None:
    with Cluster(slots=1) as cluster:
        result = cluster.result(
            cluster.submit(SCRIPT, inputs=cluster.files(1), output=bucket.url("out dir/é #1")), timeout_s=120
        )

    assert result.state is JobState.COMPLETED, result.failure
    folder = f"{bucket.prefix}/out dir/é #1/odd/"
    keys: list[str] = bucket.keys()
    written = [key.removeprefix(folder) for key in keys if key.startswith(folder)]
    assert sorted(written) == sorted(NAMES)
    assert all(bucket.content(f"out dir/é #1/odd/{name}").decode() == name for name in NAMES)
