"""Computes are defined, used, changed and removed, where a provisioner starts their nodes."""

import time
from pathlib import Path

from azure.ai.ml import MLClient, command
from azure.ai.ml.entities import AmlCompute
from azure.identity import DefaultAzureCredential

ml_client = MLClient.from_config(credential=DefaultAzureCredential())
name = f"cpu-{ml_client.workspace_name}"  # each release has one of its own


def is_defined() -> bool:
    """Return whether there is such a compute now; as long as there is none at all, `get` has any name."""
    return name in [each.name for each in ml_client.compute.list()]


assert not is_defined()
wished = AmlCompute(
    name=name, size="STANDARD_D2", min_instances=0, max_instances=1, idle_time_before_scale_down=60, tier="Dedicated"
)
made = ml_client.compute.begin_create_or_update(wished).result()
assert made.name == name
assert made.provisioning_state == "Succeeded", made.provisioning_state
defined = ml_client.compute.get(name)
assert (defined.type, defined.min_instances, defined.max_instances) == ("amlcompute", 0, 1)
assert is_defined()
assert list(ml_client.compute.list_nodes(name)) == []  # until a job needs one
assert list(ml_client.compute.list_usage(location="local")) == []
assert list(ml_client.compute.list_sizes(location="local")) == []

# A node comes for a job, and is listed.
listed = Path("node-was-listed").absolute()
job = command(
    command=f"until [ -e {listed} ]; do sleep 0.1; done; echo done > ${{{{outputs.there}}}}/one.txt",
    environment="azureml://registries/azureml/environments/sklearn-1.5/labels/latest",
    compute=name,
    outputs={"there": {"type": "uri_folder"}},
)
job = ml_client.jobs.create_or_update(job)
seen: set[str] = set()
deadline = time.monotonic() + 600
while (status := ml_client.jobs.get(job.name).status) not in ("Completed", "Failed", "Canceled"):
    assert time.monotonic() < deadline, status
    if seen := seen | {node.node_id for node in ml_client.compute.list_nodes(name)}:
        listed.touch()
    time.sleep(0.2)  # the client has no event for nodes, nor for jobs
assert status == "Completed", status
assert len(seen) == 1, seen
assert ml_client.jobs.get(job.name).compute.rpartition("/")[2] == name

# With another limit it is the same compute.
wished.max_instances = 2
ml_client.compute.begin_update(wished).result()
assert ml_client.compute.get(name).max_instances == 2
wished.max_instances = 3
ml_client.compute.begin_attach(wished).result()
assert ml_client.compute.get(name).max_instances == 3

ml_client.compute.begin_delete(name).wait(300)
deadline = time.monotonic() + 300
while is_defined():
    assert time.monotonic() < deadline
    time.sleep(0.5)  # the client's own wait is over before the server has forgotten it
