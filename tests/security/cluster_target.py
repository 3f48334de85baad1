"""A cluster of `tests.cluster` as the target of an attack: one that a test can start without a mechanism."""

from __future__ import annotations

from pathlib import Path

from tests.cluster import Cluster

NAME = "file-\x1b[31m\nred.txt"
"""Of the one file that jobs read."""


class ClusterTarget:
    """See `attack.Target`; for a cluster with an API."""

    name = "cluster"
    is_apart = False

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.url = cluster.api_url
        self.token = "none"
        self.root = str(cluster.root)
        self.inputs = cluster.home / "inputs"
        self.inputs_there = str(self.inputs)
        (self.inputs / "one").mkdir(parents=True)
        (self.inputs / "one" / NAME).write_text("one small file\n")
        self.job_id = ""

    def rows_of(self, script: str, **settings: object) -> list[str]:
        """See `attack.Target`."""
        settings = {"inputs": {"data": f"{self.inputs}/one"}, "run_max_try": 1, "error_threshold": 0, **settings}
        self.job_id = self._cluster.submit(script, **settings)  # type: ignore[arg-type]  # inputs are among them
        result = self._cluster.result(self.job_id)
        return Path(result.output).read_text().splitlines() if result.output else []
