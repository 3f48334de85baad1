"""Who may define a compute, through the API or behind its back, runs nothing beside the provisioner."""

from __future__ import annotations

import json

import httpx
import psutil
import pytest

from parallelrun_core.store.provisioning import Provisioning
from parallelrun_core.store.roles import Role
from tests.cluster import Cluster
from tests.redis_server import SECRETS

TOKEN = "an-operator"
PROVISIONER = "provisioner"
LOCAL = {"type": "local", "min_instances": 1, "slots": 1}


def check_kinds(without: str = "") -> None:
    """An operator of a provisioner for a container engine asks for processes of its own machine."""
    cluster = Cluster(nodes=0, api=True, token=TOKEN, without=without)
    cluster.environments[PROVISIONER] = {"PARALLELRUN_AGENT_SECRET": SECRETS[Role.AGENT]}
    with cluster, httpx.Client(base_url=cluster.api_url, headers={"Authorization": f"Bearer {TOKEN}"}) as api:
        provisioning = Provisioning(cluster.redis)
        cluster.add(PROVISIONER, "parallelrun_provisioner.main", "--kinds", "swarm", "--poll-seconds", "0.1")
        cluster.until(lambda: provisioning.kinds() == ["swarm"], "the provisioner acts")
        answer = api.put("/v1/computes/mine", json=LOCAL)
        # And a script does the same that may write to the folder of all services.
        definition = cluster.root / "computes" / "theirs.json"
        definition.parent.mkdir(exist_ok=True)
        definition.write_text(json.dumps({"name": "theirs", **LOCAL}))
        cluster.until(lambda: provisioning.status("theirs") is not None, "the provisioner has seen it")
        cluster.kill(PROVISIONER)  # or it would go on
        started = [each for each in psutil.process_iter(["cmdline"]) if "--compute" in (each.info["cmdline"] or [])]
        started = [each for each in started if str(cluster.root) in each.environ().get("PARALLELRUN_ROOT", "")]
        for each in started:
            each.kill()
        assert not started
        status = provisioning.status("theirs")
        assert status is not None
        assert "starts no nodes of type 'local', but of swarm" in status.why
        assert answer.status_code == 422


@pytest.mark.integration
def test_a_definition_starts_nothing_beside_a_provisioner_for_another_engine() -> None:
    check_kinds()
