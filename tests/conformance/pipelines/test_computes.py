"""On which nodes the steps of a pipeline run, once computes are defined."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

import pytest

from parallelrun import Client, Cluster, Job
from parallelrun_core.folder.job_folder import JobFolder
from tests.conformance.pipelines.documents import HERE

pytestmark = [pytest.mark.integration, pytest.mark.slow]
WITHIN_S: Final = 90.0
COMPUTES: Final = ("near", "far")
ANYWHERE: Final = "anywhere"


def ran_on(client: Client, root: Path, job: Job) -> dict[str, object]:
    """The compute of the nodes on which each step has run, by what they are called."""
    ran: dict[str, object] = {}
    for step in job.steps:
        assert step.job is not None
        if step.type == "pipeline":
            ran[step.name] = ran_on(client, root, client.jobs.get(step.job))
            continue
        nodes = [each.name for each in (JobFolder(root, step.job).logs / "user" / "stdout").iterdir()]
        named = {next((name for name in COMPUTES if name in node), ANYWHERE) for node in nodes}
        (ran[step.name],) = named
    return ran


def test_each_step_runs_on_the_compute_that_counts_for_it(tmp_path: Path) -> None:
    file = tmp_path / "computes_of_steps.yml"
    shutil.copy(HERE / "documents" / file.name, file)
    with Cluster(tmp_path / "cluster", nodes=1, processes=1, has_computes=True) as cluster, cluster.client() as client:
        for name in COMPUTES:
            client.computes.create({"name": name, "type": "local", "slots": 2, "max_instances": 1})
        job = client.jobs.wait(client.jobs.create(file).id, timeout_s=WITHIN_S)
        assert ran_on(client, cluster.layout.root, job) == {
            "by_default": "near",
            "by_name": "far",
            "anywhere": ANYWHERE,
            "inner": {"by_default": "near"},
            "inner_with_its_own": {"by_default": "far", "by_name": "near"},
            "inner_with_a_compute": {"by_default": "far"},
        }
        for name in COMPUTES:
            client.computes.delete(name)
