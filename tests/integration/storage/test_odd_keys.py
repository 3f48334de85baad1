"""Keys that are listed and that no file can have as its name: in each form of an input, they cost their items alone."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from parallelrun_core.intake.reading import read_job
from parallelrun_core.wire.states import JobState
from tests.cluster import Cluster
from tests.integration.storage.conftest import Bucket, Store
from tests.object_servers import Moto, ObjectServer

pytestmark = [pytest.mark.integration, pytest.mark.slow]

LONG = "x" * 300
SCRIPT = """
import os
def run(mini_batch):
    return [os.path.basename(path) for path in mini_batch] if isinstance(mini_batch, list) else list(mini_batch.a)
"""
FORMS: dict[str, dict[str, Any]] = {
    "paths": {},
    "download": {"mode": "download"},
    "table": {"transformations": [{"read_delimited": {}}]},
}


@pytest.fixture(scope="module")
def server(store: Store) -> ObjectServer:
    return store(Moto)


@pytest.fixture
def cluster(server: ObjectServer, tmp_path: Path) -> Iterator[Cluster]:
    cluster = Cluster(agent_flags=("--cache-dir", str(tmp_path / "cache")), slots=1)
    cluster.environments |= dict.fromkeys(cluster.nodes, server.environment)
    with cluster:
        yield cluster


def test_odd_keys_that_no_file_can_have_cost_their_items_alone(bucket: Bucket, cluster: Cluster) -> None:
    for key in ("a", "b", LONG, "sub/", "sub/c"):
        bucket.put(f"in/{key}", b"a\n1\n")
    for form, fields in FORMS.items():
        size = {} if form == "table" else {"mini_batch_size": 1}
        inputs = {"rows": {"path": bucket.url("in"), **fields}}
        settings = {"entry_script": "e.py", "inputs": inputs, "run_max_try": 1, "on_failure": "isolate", **size}
        spec = read_job(settings).job
        document = spec.model_dump(mode="json", exclude_unset=True, exclude={"entry_script"})
        result = cluster.result(cluster.submit(SCRIPT, **document), 120)
        assert result.state is JobState.COMPLETED, (form, result.failure)
        if form == "table":  # the agent names the parts of tables itself, so a long key is as good as any
            assert sorted(cluster.output(result)) == ["1"] * 4
            assert result.progress.failed == 1, result.warnings
            continue
        assert sorted(cluster.output(result)) == ["a", "b", "c"]
        with (cluster.folder(result.job_id).logs / "failed_items.csv").open(newline="") as file:
            failed = {row["Item"].rpartition("/in/")[2]: row["Error Message"] for row in csv.DictReader(file)}
        assert sorted(failed) == sorted([LONG, "sub"]), (form, failed)
        assert "Rename that object" in failed[LONG], form
        assert "its key ends in '/'" in failed["sub"], form
