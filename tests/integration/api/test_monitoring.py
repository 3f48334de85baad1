"""The dashboard and the alerts of `deploy/` ask for what servers tell, and for nothing else."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest
import yaml
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from parallelrun_core.answers.nodes import NodePressure
from parallelrun_core.answers.retention import RemovedKind
from parallelrun_core.hosting.storage_metrics import StorageCollector
from parallelrun_core.layout import retention_of
from parallelrun_core.retention.report import SweepReport, write_report
from parallelrun_core.storage.objects.meters import RequestCounts
from parallelrun_core.store.nodes import NodeInfo, NodeRegistry
from parallelrun_core.wire.states import NodeState
from tests.cluster import Cluster
from tests.object_servers.server import free_port

if TYPE_CHECKING:
    from redis import Redis

pytestmark = pytest.mark.integration

DEPLOY = Path(__file__).parents[3] / "deploy"
OF_OTHERS = {"process_resident_memory_bytes"}
"""What every client of Prometheus for Python tells."""


def expressions() -> Iterator[str]:
    """What the dashboard and the alerts ask, with the dashboard's variables filled in."""
    for panel in dashboard()["panels"]:
        for target in panel.get("targets", []):
            yield target["expr"].replace("$__rate_interval", "5m").replace("$instance", ".*")
    for rule in rules():
        yield rule["expr"]


def dashboard() -> dict[str, Any]:
    return json.loads((DEPLOY / "grafana" / "parallelrun.json").read_text())  # type: ignore[no-any-return]


def rules() -> list[dict[str, Any]]:
    (group,) = yaml.safe_load((DEPLOY / "prometheus" / "parallelrun.rules.yml").read_text())["groups"]
    return list(group["rules"])


def test_every_name_and_label_that_is_asked_for_is_told(api: httpx.Client, redis: Redis, root: Path) -> None:
    retention_of(root).mkdir(exist_ok=True)
    write_report(root, SweepReport(at=1.0, rules={}, removed={"jobs": RemovedKind(count=1, bytes=2)}))
    NodeRegistry(redis).beat(a_node(), lease_ms=60_000)
    api.get("/v1/jobs")
    stores = CollectorRegistry()
    stores.register(StorageCollector(lambda: {("s3://a", "get"): RequestCounts()}))
    told: dict[str, set[str]] = {}
    for text in (api.get("/metrics").text, generate_latest(stores).decode()):
        for family in text_string_to_metric_families(text):
            told.setdefault(family.name + "_total" * (family.type == "counter"), set())
            for sample in family.samples:
                told.setdefault(sample.name, set()).update(sample.labels)

    for expression in expressions():
        for name, _, selected in re.findall(r"((?:parallelrun|process)_\w+)(\{([^}]*)\})?", expression):
            assert name in told or name in OF_OTHERS, expression
            labels = set(re.findall(r"(\w+)=", selected)) - {"instance", "job"}
            assert labels <= told.get(name, set()), expression


def test_every_alert_says_what_is_wrong_and_what_to_do() -> None:
    assert len({rule["alert"] for rule in rules()}) == len(rules()) >= 6
    for rule in rules():
        assert rule["labels"]["severity"] in ("warning", "critical")
        assert rule["annotations"].keys() == {"summary", "description"}
        assert re.fullmatch(r"\d+m", rule["for"])


def test_panels_lie_side_by_side_and_have_titles() -> None:
    taken = set[tuple[int, int]]()
    for panel in dashboard()["panels"]:
        assert panel["title"]
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert max(x for x, _ in cells) < 24
        assert not cells & taken, panel["title"]
        taken |= cells


@pytest.mark.skipif(shutil.which("promtool") is None, reason="needs promtool of Prometheus")
def test_prometheus_understands_all_of_them(tmp_path: Path) -> None:
    every = [{"record": f"a:{number}", "expr": expression} for number, expression in enumerate(expressions())]
    (tmp_path / "rules.yml").write_text(yaml.safe_dump({"groups": [{"name": "all", "rules": every}]}))
    for file in (tmp_path / "rules.yml", DEPLOY / "prometheus" / "parallelrun.rules.yml"):
        checked = subprocess.run(
            ["promtool", "check", "rules", file], capture_output=True, text=True, timeout=60, check=False
        )
        assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.skipif(shutil.which("prometheus") is None, reason="needs Prometheus")
def test_a_prometheus_scrapes_a_server_and_evaluates_every_alert(
    api: httpx.Client, redis: Redis, tmp_path: Path
) -> None:
    NodeRegistry(redis).beat(a_node(), lease_ms=60_000)
    settings = yaml.safe_load((DEPLOY / "prometheus" / "prometheus.yml").read_text())
    settings["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
    (scraped,) = settings["scrape_configs"]
    scraped["static_configs"] = [{"targets": [f"{api.base_url.host}:{api.base_url.port}"]}]
    (tmp_path / "prometheus.yml").write_text(yaml.safe_dump(settings))
    shutil.copy(DEPLOY / "prometheus" / "parallelrun.rules.yml", tmp_path)
    address = f"127.0.0.1:{free_port()}"
    command = [
        "prometheus", f"--config.file={tmp_path / 'prometheus.yml'}", f"--storage.tsdb.path={tmp_path / 'data'}",
        f"--web.listen-address={address}",
    ]  # fmt: skip
    with (tmp_path / "log").open("wb") as log, subprocess.Popen(command, stdout=log, stderr=log) as prometheus:
        try:
            with httpx.Client(base_url=f"http://{address}/api/v1/") as client:
                Cluster.until(lambda: has_evaluated(client), "all alerts were evaluated", timeout_s=120)
                for expression in expressions():
                    answer = client.get("query", params={"query": expression})
                    assert answer.json()["status"] == "success", answer.text
                nodes = client.get("query", params={"query": 'sum(parallelrun_agents{state="ready"})'}).json()
                assert [sample["value"][1] for sample in nodes["data"]["result"]] == ["1"]
        finally:
            prometheus.terminate()


def has_evaluated(prometheus: httpx.Client) -> bool:
    """Return whether the server was scraped, and every alert was evaluated without an error."""
    try:
        targets, rules_state = (prometheus.get(path).raise_for_status() for path in ("targets", "rules"))
    except httpx.HTTPError:  # it is starting
        return False
    groups = rules_state.json()["data"]["groups"]
    health = [rule["health"] for group in groups for rule in group["rules"]]
    assert "err" not in health, groups
    is_up = [each["health"] for each in targets.json()["data"]["activeTargets"]] == ["up"]
    return is_up and health == ["ok"] * len(rules())


def a_node() -> NodeInfo:
    pressure = NodePressure(of="cgroup", cpu=0.25, io=0.5, memory=0.0)
    return NodeInfo(
        node="a", session="a-1", host="h", pid=1, slots=4, busy=2, state=NodeState.READY, version="0.1.0",
        started=1.0, jobs=[], pressure=pressure,
    )  # fmt: skip
