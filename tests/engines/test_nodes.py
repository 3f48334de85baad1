"""Nodes that come for a job and go after it, on real engines, with all that is between a job and an engine."""

from __future__ import annotations

import pytest

from parallelrun_core.computes.launch import compute_of
from parallelrun_core.folder.decisions import read_decisions
from tests.acceptance import engine as docker_engine
from tests.acceptance.http_user import zip_of
from tests.engines import targets
from tests.engines.nodes import Provisioned
from tests.engines.target import PATIENCE_S, Missing

pytestmark = [pytest.mark.acceptance, pytest.mark.docker, pytest.mark.slow, pytest.mark.timeout(2 * PATIENCE_S)]

SCRIPT = "def run(mini_batch):\n    return mini_batch\n"


@pytest.mark.parametrize("name", ["docker", "swarm"])
def test_nodes_come_for_a_job_and_nothing_is_left_of_them(name: str) -> None:
    try:
        with targets.reach(name) as target, Provisioned(target, most=2, idle_s=1) as there:
            spec = {"entry_script": "entry.py", "inputs": str(there.cluster.files(4)), "compute": there.pool}
            job = there.user.submit(spec, zip_of({"entry.py": SCRIPT}))
            there.user.completed(job)
            nodes = {compute_of(outcome.node) for outcome in read_decisions(there.cluster.folder(job).path)}

            assert nodes == {there.pool}
            there.cluster.until(lambda: not there.ours(), "idle nodes are given back", PATIENCE_S)
    except Missing as missing:
        if docker_engine.is_required():
            pytest.fail(str(missing), pytrace=False)
        pytest.skip(str(missing))
