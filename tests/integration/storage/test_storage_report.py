"""What a job has asked of a store is in its logs, and is what it needed."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from functools import partial
from pathlib import Path

import httpx
import pytest

from parallelrun.embedded.cluster import reserve_port
from parallelrun_core.folder.storage_report import fields_of
from parallelrun_core.storage.objects import ObjectStorage, clients
from parallelrun_core.storage.objects.meters import reading, since
from parallelrun_core.storage.objects.trouble import Throttled
from parallelrun_core.storage.objects.uploads import s3
from parallelrun_core.wire.states import JobState
from tests.cluster import Cluster
from tests.integration.storage.conftest import Bucket, Store
from tests.object_servers import Moto, ObjectServer
from tests.store_proxy import StoreProxy

pytestmark = [pytest.mark.integration, pytest.mark.slow]

SCRIPT = "def run(mini_batch):\n    return [open(path).read()[:1] for path in mini_batch]\n"
COUNT, SIZE = 7, 1000


@pytest.fixture(scope="module")
def server(store: Store) -> ObjectServer:
    return store(Moto)


@pytest.mark.skipif(sys.platform != "linux", reason="agents need Linux")
def test_a_job_reports_each_request_to_the_store(bucket: Bucket, tmp_path: Path) -> None:
    for number in range(COUNT):
        bucket.put(f"in/{number}", b"x" * SIZE)
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "e.py").write_text(SCRIPT)
    job = {"entry_script": "e.py", "code": "src", "mini_batch_size": 2, "inputs": {"x": {"path": bucket.url("in")}}}
    (tmp_path / "job.yml").write_text(json.dumps(job))

    done = subprocess.run(
        [sys.executable, "-m", "parallelrun", "run", "job.yml", "--keep", "--output", bucket.url("out")],
        cwd=tmp_path, env={**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}, check=False,
        capture_output=True, text=True, timeout=110,
    )  # fmt: skip

    assert done.returncode == 0, done.stdout + done.stderr
    lines = [line for path in tmp_path.rglob("sys/storage/*.csv") for line in fields_of(path.read_text())]
    figures = {(line["node"], line["operation"]): (int(line["requests"]), int(line["bytes"])) for line in lines}
    (node,) = {name for name, operation in figures if operation == "get"}
    assert figures[node, "get"] == (COUNT, COUNT * SIZE)
    assert figures["master", "list"] == (1, 0)
    assert figures["concatenator", "put"] == (1, 2 * COUNT)
    assert {line["failures"] for line in lines} == {"0"}
    assert all(0 < float(line["p50_ms"]) <= float(line["p99_ms"]) for line in lines)


def test_pages_are_counted_and_not_keys(bucket: Bucket) -> None:
    for number in range(1001):
        bucket.put(f"in/{number:04}", b"x")
    before = reading()

    assert sum(len(names) for _, names in ObjectStorage().files(bucket.url("in"))) == 1001

    asked = {operation: asked.requests for (_, operation), asked in since(before).items()}
    assert asked == {"head": 1, "list": 2}


def test_a_store_that_has_too_much_to_do_is_seen(
    bucket: Bucket, server: ObjectServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = bucket.put("a") and bucket.url("a")
    with StoreProxy(server.url) as proxy:
        for name, value in server.environment_at(proxy.url).items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(clients, "_RETRY_FOR_S", 1)
        clients.forget()
        version = ObjectStorage().version(url)
        before = reading()
        proxy.spoil("503")

        with pytest.raises(Throttled, match="SlowDown"), ObjectStorage().open(url, version=version) as file:
            file.read()

    clients.forget()
    s3.forget()
    ((_, asked),) = since(before).items()
    assert (asked.requests, asked.failures, asked.throttled, asked.bytes) == (1, 1, 1, 0)
    assert asked.latency_s(0.5) > 0.01


@pytest.mark.skipif(sys.platform != "linux", reason="agents need Linux")
def test_each_service_tells_prometheus_what_it_has_asked(bucket: Bucket) -> None:
    for number in range(COUNT):
        bucket.put(f"in/{number}", b"x" * SIZE)
    cluster = Cluster(nodes=1)
    ports = {name: reserve_port(0) for name in ("master", "concatenator", *cluster.nodes)}
    for name, port in ports.items():
        cluster.environments[name] = {"PARALLELRUN_HEALTH_PORT": str(port.getsockname()[1])}
        port.close()

    def tells(name: str, operation: str, metric: str) -> bool:
        answer = httpx.get(f"http://127.0.0.1:{cluster.environments[name]['PARALLELRUN_HEALTH_PORT']}/metrics")
        line = rf'^parallelrun_storage_{metric}{{operation="{operation}",store="[^"]+"}} (\S+)$'
        return sum(map(float, re.findall(line, answer.text, re.MULTILINE))) > 0

    with cluster:
        job_id = cluster.submit(SCRIPT, inputs={"x": {"path": bucket.url("in")}}, output=bucket.url("out"))
        assert cluster.result(job_id).state is JobState.COMPLETED
        (node,) = cluster.nodes
        for told in (("master", "list"), ("concatenator", "put"), (node, "get")):
            cluster.until(partial(tells, *told, "requests_total"), f"{told} is told")
            assert tells(*told, "seconds_count")
