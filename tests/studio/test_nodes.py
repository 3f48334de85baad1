"""The nodes of a job and of the cluster: all side by side, what each uses, and how one is drained."""

from __future__ import annotations

import re

import httpx
import pytest

from parallelrun import Client
from parallelrun.errors import NotFound
from parallelrun.models import Node
from tests.studio.chromium import NARROW, Tab
from tests.studio.cluster import TOKEN, Studio

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(300)]


def test_nodes_of_a_job_stand_side_by_side_with_what_they_use(opened: Tab, shown: Studio) -> None:
    job = shown.jobs["good"]
    opened.open(f"/jobs/{job}/resources")
    table = opened.page.get_by_role("region", name="Table: What the nodes use")
    total, node = table.locator("tbody tr").all()
    headers = {"Authorization": f"Bearer {TOKEN}"}
    usage = httpx.get(f"{shown.url}/v1/jobs/{job}/node-usage", headers=headers, trust_env=False, timeout=60).json()
    (measured,) = usage["items"]
    memory = re.compile(rf"GiB of {measured['memory_bytes'] / 2**30:.1f}")
    total.get_by_text("All 1 node at work").wait_for()
    for row in (total, node):
        row.get_by_text(re.compile(rf"% of {measured['cpus']:g}$")).wait_for()
        row.get_by_text(memory).wait_for()
        row.get_by_text(re.compile(r"read .*/s, written .*/s")).wait_for()
        row.get_by_text(re.compile(r"in .*/s, out .*/s")).wait_for()
    node.get_by_role("img", name=re.compile("The last .*: CPU .* to .*, memory")).wait_for()
    opened.resize(*NARROW)
    assert opened.overflow() <= 0


def test_nodes_of_the_cluster_stand_side_by_side_and_are_drained(opened: Tab, shown: Studio) -> None:
    page, cluster = opened.page, shown.cluster
    with Client(shown.url, token=TOKEN) as client:

        def spare() -> Node | None:
            return next((each for each in client.nodes.list() if each.node == "spare" and each.is_alive), None)

        def has_usage() -> bool:
            node = spare()
            return node is not None and node.usage is not None

        def is_ready() -> bool:
            node = spare()
            return node is not None and node.state == "ready"

        flags = ["--slots", "1", "--work-dir", str(cluster.home / "work" / "spare")]
        cluster.add("spare", "parallelrun_agent.main", "--node", "spare", *flags)
        cluster.until(has_usage, "it has measured itself", 60)
        opened.open("/nodes")
        table = page.get_by_role("region", name="Table: What the nodes use")
        row = table.get_by_role("row", name=re.compile("^spare"))
        node = spare()
        assert node is not None
        row.get_by_text(re.compile(rf"GiB of {node.memory_bytes / 2**30:.1f}")).wait_for()
        row.get_by_text(re.compile(r"in .*/s, out .*/s")).wait_for()
        table.get_by_role("row", name=re.compile("^All machines")).wait_for()

        for _ in range(2):  # one that comes back under its name works until it is drained again
            cluster.until(is_ready, "it is ready", 60)
            page.get_by_role("button", name="Drain spare").click()
            dialog = page.get_by_role("dialog", name="Drain spare?")
            dialog.get_by_text("parallelrun node drain spare").wait_for()
            assert opened.violations() == []
            dialog.get_by_role("button", name="Drain", exact=True).click()
            cluster.until(lambda: not any(each.node == "spare" for each in client.nodes.list()), "it has left", 60)
            page.get_by_role("heading", name="spare").wait_for(state="detached")
            assert cluster.processes["spare"].wait(60) == 0
            cluster.start("spare")
        cluster.kill("spare")
        with pytest.raises(NotFound, match="no node 'nobody'"):
            client.nodes.drain("nobody")


def test_computes_say_what_an_hour_of_their_nodes_costs(opened: Tab, shown: Studio) -> None:
    cluster, headers = shown.cluster, {"Authorization": f"Bearer {TOKEN}"}
    compute = f"{shown.url}/v1/computes/paid"
    httpx.put(
        compute, json={"type": "manual", "max_instances": 2}, headers=headers, trust_env=False, timeout=60
    ).raise_for_status()
    flags = ["--slots", "3", "--work-dir", str(cluster.home / "work" / "paid"), "--compute", "paid"]
    cluster.add("paid", "parallelrun_agent.main", "--node", "paid-1", *flags)
    try:
        opened.open("/nodes")
        opened.page.get_by_role("row", name=re.compile("^paid manual")).get_by_role("cell", name="0.15").wait_for()
        answer = httpx.get(compute, headers=headers, trust_env=False, timeout=60).json()
        assert answer["cost_per_hour"] == 0.15
    finally:
        cluster.kill("paid")
        httpx.delete(compute, headers=headers, trust_env=False, timeout=60)
