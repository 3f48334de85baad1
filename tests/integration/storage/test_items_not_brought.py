"""Items whose objects can't be brought to a node: those alone are lost, the others of their mini-batches are run."""

from __future__ import annotations

import csv
import os
from pathlib import Path

import pytest

from parallelrun_core.folder.manifest import read_manifest
from parallelrun_core.wire.states import JobState
from tests.cluster import Cluster
from tests.integration.storage.conftest import Bucket, Store
from tests.object_servers import Moto, ObjectServer
from tests.object_servers.s3 import S3Outside
from tests.object_servers.server import BUCKET
from tests.store_proxy import StoreProxy

pytestmark = [pytest.mark.integration, pytest.mark.slow]

SCRIPT = """
import os
def run(mini_batch):
    return [os.path.basename(path) for path in mini_batch]
"""
LONG = "x" * 300
"""More than the name of a file may have."""


@pytest.fixture(scope="module")
def server(store: Store) -> ObjectServer:
    return store(Moto)


def test_items_that_are_gone_archived_or_named_too_long_are_lost_alone(
    tmp_path: Path, server: ObjectServer, bucket: Bucket
) -> None:
    outside = server.outside()
    assert isinstance(outside, S3Outside)
    names = [f"{number:03d}" for number in range(19)] + [LONG]
    for name in names:
        bucket.put(f"in/{name}")
    archived = bucket.url("in/009").split(f"/{BUCKET}/")[1]
    outside.client.put_object(Bucket=BUCKET, Key=archived, Body=b"x", StorageClass="GLACIER")
    cluster = Cluster(agent_flags=("--cache-dir", str(tmp_path / "cache")), slots=1)
    with StoreProxy(server.url) as proxy:
        cluster.environments |= {node: server.environment_at(proxy.url) for node in cluster.nodes}
        with cluster:
            proxy.set("blackhole")  # for the agent: the master lists all the same
            job = cluster.submit(
                SCRIPT, inputs=bucket.url("in"), mini_batch_size=5, run_max_try=1, on_failure="isolate"
            )  # fmt: skip
            cluster.until(lambda: len(list(read_manifest(cluster.folder(job).path))) == 4, "all is listed")
            outside.client.delete_object(Bucket=BUCKET, Key=archived.replace("009", "002"))
            proxy.set("pass")
            result = cluster.result(job, 120)
            with (cluster.folder(job).logs / "failed_items.csv").open(newline="") as file:
                listed = {os.path.basename(row["Item"]): row["Error Message"] for row in csv.DictReader(file)}
            output = cluster.output(result)
    assert result.state is JobState.COMPLETED
    assert sorted(listed) == ["002", "009", LONG]
    assert output == [name for name in names if name not in listed]
    assert (result.progress.done, result.progress.items_lost, result.progress.items_found) == (4, 3, 20)
    assert "InvalidObjectState" in listed["009"]
    assert "Rename that object" in listed[LONG]
