"""Makes the golden root folder of a release: what its services leave of one of each thing. Run it once with the code
and the tests of that release, whose `Cluster` has `/golden/root` as its root folder:

    cd RELEASE && PYTHONPATH=shared:client:…:. python tests/golden/build_root.py HERE/tests/golden/root2

Locks, measurements of the machine and folders without files are left out. The folder then stays as it is:
every later release must open it.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

from parallelrun import Client
from tests.cluster import Cluster

HOME = Path("/golden")
SCRIPT = "import os\ndef run(mini_batch):\n    return [os.path.basename(path) for path in mini_batch]\n"


def build(target: Path) -> None:
    """Run a job and a pipeline, and define an asset, a schedule, an endpoint, a datastore and a compute."""
    code, data = HOME / "code", HOME / "data"
    for folder in (code, data):
        folder.mkdir(parents=True)
    (code / "entry.py").write_text(SCRIPT)
    for number in range(4):
        (data / f"file-{number}.txt").write_text("golden")
    job: dict[str, Any] = {"code": str(code), "entry_script": "entry.py", "inputs": str(data), "mini_batch_size": 2}
    with Cluster(slots=2, api=True) as cluster, Client(cluster.api_url) as client:
        created = client.jobs.create({**job, "name": "golden"}, upload_code=False)
        step = {"type": "command", "command": "echo hi", "environment": "azureml:any@latest"}
        pipeline = {"type": "pipeline", "name": "golden-pipeline", "jobs": {"hello": step}}
        for each in (created, client.jobs.create(pipeline, upload_code=False)):
            client.jobs.wait(each.id, timeout_s=60)
        path = str(data)
        client.data.create({"name": "files", "type": "uri_folder", "path": path}, upload=False)
        client.schedules.create(
            {"name": "nightly", "trigger": {"type": "cron", "expression": "0 3 * * *"}, "create_job": job}
        )
        client.datastores.create({"name": "images", "type": "s3", "bucket": "golden"})
        client.computes.create({"name": "pool", "type": "local", "max_instances": 2})
        cluster.until(lambda: not cluster.registry.active_jobs(), "all is retired")
        shutil.copytree(cluster.root, target, ignore=shutil.ignore_patterns("*.probe"))


if __name__ == "__main__":
    build(Path(sys.argv[1]).absolute())
