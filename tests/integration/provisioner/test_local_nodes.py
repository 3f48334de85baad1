"""Nodes come when a job needs them and go when none does, whatever dies meanwhile."""

from __future__ import annotations

import psutil
import pytest

from tests.integration.provisioner.conftest import Provisioned

pytestmark = pytest.mark.integration

SLOW = """
import os, time
def run(mini_batch):
    time.sleep(0.1)
    return [os.path.basename(path) for path in mini_batch]
"""


def test_nodes_come_for_a_job_and_go_after_it(provisioned: Provisioned) -> None:
    cluster = provisioned.cluster
    provisioned.define("three", max_instances=3)
    cluster.until(lambda: provisioned.status("three").plan != "", "the provisioner knows the compute")
    assert provisioned.agents("three") == []
    job = cluster.submit(SLOW, inputs=cluster.files(60), mini_batch_size=1, instance_count=5, compute="three")
    cluster.until(lambda: provisioned.status("three").ready == 3, "as many nodes as it may have are there")
    assert len(provisioned.agents("three")) == 3
    result = cluster.result(job)
    assert len(cluster.output(result)) == 60
    cluster.until(lambda: provisioned.agents("three") == [], "all nodes have gone")
    cluster.until(lambda: not provisioned.status("three").nodes, "and the provisioner knows it")
    assert result.progress.lost == result.progress.retried == 0
    assert not [info for info, _ in cluster.known_nodes.all() if info.compute == "three"], "they left in order"
    cluster.until(lambda: not cluster.known_nodes.asked_to_leave(), "what was asked of them is forgotten")
    provisioned.remove("three")


def test_what_is_killed_is_replaced_and_nothing_is_charged(provisioned: Provisioned) -> None:
    cluster = provisioned.cluster
    provisioned.define("killed", max_instances=3)
    job = cluster.submit(SLOW, inputs=cluster.files(250), mini_batch_size=1, instance_count=3, compute="killed")
    cluster.until(
        lambda: len([1 for info, _ in cluster.known_nodes.all() if job in info.workers]) == 3, "all nodes work"
    )
    victims = provisioned.agents("killed")[:2]
    cluster.kill("provisioner")
    for agent in victims:
        agent.kill()
    psutil.wait_procs(victims, timeout=20)
    cluster.start("provisioner")
    cluster.until(lambda: len(provisioned.agents("killed")) == 3, "others take their place")
    result = cluster.result(job)
    assert sorted(cluster.output(result)) == [f"file-{number:07d}.txt" for number in range(250)]
    assert result.progress.retried == result.progress.failed == 0
    assert result.progress.lost > 0
    cluster.until(lambda: provisioned.agents("killed") == [], "all nodes have gone")
    provisioned.remove("killed")


def test_two_provisioners_do_no_harm_and_the_second_goes_on(provisioned: Provisioned) -> None:
    cluster = provisioned.cluster
    provisioned.start("provisioner2")
    provisioned.define("both", max_instances=2, min_instances=1)
    cluster.until(lambda: provisioned.status("both").ready == 1, "the least nodes are there without any job")
    cluster.processes["provisioner"].terminate()
    cluster.processes["provisioner"].wait()
    cluster.until(lambda: cluster.logged("provisioner2", "acts") == 1, "the other one acts")
    job = cluster.submit(SLOW, inputs=cluster.files(30), mini_batch_size=1, compute="both")
    cluster.until(lambda: provisioned.status("both").ready == 2, "the other one asks for nodes")
    cluster.start("provisioner")
    assert len(cluster.output(cluster.result(job))) == 30
    cluster.until(lambda: len(provisioned.agents("both")) == 1, "no more than the least are left")
    assert len(list((cluster.root / "nodes" / "both").glob("*.node"))) <= 2
    cluster.processes["provisioner2"].terminate()
    cluster.processes.pop("provisioner2").wait()
    provisioned.remove("both")


def test_a_launch_that_fails_says_why_and_is_tried_again_after_an_update(provisioned: Provisioned) -> None:
    cluster = provisioned.cluster
    blocked = cluster.root / "nodes" / "failing"
    blocked.parent.mkdir(exist_ok=True)
    blocked.touch()
    provisioned.define("failing", min_instances=1)
    cluster.until(lambda: provisioned.status("failing").failures >= 2, "it is tried twice")
    status = provisioned.status("failing")
    assert "can't be written" in status.why
    assert status.next_attempt > status.at
    blocked.unlink()
    provisioned.define("failing", min_instances=1)  # as it was
    cluster.until(lambda: provisioned.status("failing").ready == 1, "it is tried again at once")
    assert provisioned.status("failing").failures == 0
    provisioned.remove("failing")


def test_a_provisioner_after_which_nobody_goes_on_gives_back_all_nodes(
    provisioned: Provisioned,
) -> None:
    cluster = provisioned.cluster
    provisioned.define("taken", max_instances=2, min_instances=1)
    cluster.until(lambda: provisioned.status("taken").ready == 1, "a node is there")
    cluster.processes["provisioner"].terminate()
    cluster.processes["provisioner"].wait()
    provisioned.start("provisioner3", "--release-on-stop")
    job = cluster.submit(SLOW, inputs=cluster.files(100), mini_batch_size=1, instance_count=2, compute="taken")
    cluster.until(lambda: provisioned.status("taken").ready == 2, "both are at work")
    cluster.processes["provisioner3"].terminate()
    cluster.processes.pop("provisioner3").wait()
    assert provisioned.agents("taken") == []
    assert not list((cluster.root / "nodes" / "taken").glob("*.node"))
    cluster.start("provisioner")
    result = cluster.result(job)
    assert len(cluster.output(result)) == 100
    assert result.progress.retried == 0
    provisioned.remove("taken")
