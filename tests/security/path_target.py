"""A cluster of `tests.cluster` as the target of an attack through its API: one that may be without a mechanism."""

from __future__ import annotations

from pathlib import Path

from tests.acceptance.http_user import HttpUser
from tests.cluster import Cluster
from tests.security.attacks.paths import submit


class PathTarget:
    """See `attack.Target`; of the machine, its jobs may use the folder of its inputs and one for outputs.

    Args:
        cluster: one with an API, not started yet.
    """

    name = "cluster"
    is_apart = False
    token = "right"

    def __init__(self, cluster: Cluster) -> None:
        self.url = cluster.api_url
        self.root = str(cluster.root)
        self.inputs = cluster.home / "inputs"
        self.inputs_there = str(self.inputs)
        self.outputs = cluster.home / "outputs"
        (self.inputs / "one").mkdir(parents=True)
        (self.inputs / "one" / "file.txt").write_text("one small file\n")
        self.outputs.mkdir()
        cluster.environments["api"] = {"PARALLELRUN_ALLOWED_ROOTS": f"{self.inputs}:{self.outputs}:{cluster.root}"}

    def user(self) -> HttpUser:
        """A submitter."""
        return HttpUser(self.url, self.token)

    def rows_of(self, script: str, **settings: object) -> list[str]:
        """See `attack.Target`."""
        with self.user() as user:
            status, job = submit(user, self, script, **settings)
            if status != 202 or job["output"] is None:
                return []
            return Path(job["output"]["path"]).read_text().splitlines()
