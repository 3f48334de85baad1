"""A cluster of `tests.cluster` as the target of an attack through its API: one that may be without a mechanism."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from tests.acceptance.http_user import HttpUser
from tests.cluster import Cluster
from tests.security.attack import Attack
from tests.security.attacks.paths import submit
from tests.security.local_store import LocalStore
from tests.security.target import give_secret


class PathTarget:
    """See `attack.Target`; of the machine, its jobs may use the folder of its inputs and one for outputs.

    Args:
        cluster: one with an API, not started yet.
        store: a server of which jobs may use a part.
    """

    name = "cluster"
    is_apart = False
    token = "right"

    def __init__(self, cluster: Cluster, store: LocalStore | None = None) -> None:
        self.store = store
        self.url = cluster.api_url
        self.root = str(cluster.root)
        self.inputs = cluster.home / "inputs"
        self.inputs_there = str(self.inputs)
        self.outputs = cluster.home / "outputs"
        (self.inputs / "one").mkdir(parents=True)
        (self.inputs / "one" / "file.txt").write_text("one small file\n")
        self.outputs.mkdir()
        roots = f"{self.inputs}:{self.outputs}:{cluster.root}"
        if store is not None:
            roots += f":{store.roots}"
            give_secret(cluster.home / "secrets", os.getuid())
            for name in ("master", "concatenator", *cluster.nodes):
                cluster.environments[name] = {"PARALLELRUN_SECRETS_DIR": str(cluster.home / "secrets")}
        cluster.environments.setdefault("api", {})["PARALLELRUN_ALLOWED_ROOTS"] = roots

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


@contextmanager
def running(*, has_store: bool = False, visibility: str = "", **options: Any) -> Iterator[PathTarget]:
    """A target whose cluster runs.

    Args:
        has_store: with a store, of which its jobs may use a part.
        visibility: the setting of the API.
        options: of `Cluster`.
    """
    with LocalStore() if has_store else nullcontext() as store:
        cluster = Cluster(api=True, **options)
        target = PathTarget(cluster, store)
        if visibility:
            cluster.environments["api"]["PARALLELRUN_VISIBILITY"] = visibility
        with cluster:
            yield target


def check_attack(attacks: Mapping[str, Attack], name: str, without: str = "", **options: Any) -> None:
    """Play an attack against a cluster of its own, without a mechanism if one is named; `options` are of `running`."""
    with running(without=without, **options) as target:
        evidence = attacks[name].play(target)
        assert evidence == "", evidence
