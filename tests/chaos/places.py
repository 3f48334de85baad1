"""Where the inputs and outputs of a scenario are."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Protocol

from tests.chaos.oracle import ENTRY_SCRIPT
from tests.cluster import Cluster
from tests.object_servers import BUCKET
from tests.object_servers.s3 import S3Server

_AT_ONCE = 10

STORE_SCRIPT = """
import os, random, time, zlib
from azureml_user.parallel_run import EntryScript
out = EntryScript().output_dir
def init():
    open(os.path.join(os.environ["MARKS"], str(os.getpid())), "w").close()
def run(mini_batch):
    time.sleep(random.uniform(0.001, 0.010) + len(mini_batch) * float(os.environ.get("ITEM_S", "0")))
    names = [open(path).read() for path in mini_batch]
    for name in names:
        with open(os.path.join(out, name), "w") as file:
            file.write(name)
    return [f"{name} {zlib.crc32(name.encode())}" for name in names]
"""
"""Its rows are made of what is in the objects, which have their own names as content, and so do the files it writes."""


class Place(Protocol):
    """See the module."""

    script: str

    def prepare(self, cluster: Cluster) -> None:
        """Before the cluster starts."""
        ...

    def inputs(self, cluster: Cluster, count: int) -> str | Path:
        """A folder with so many files."""
        ...

    def settings(self) -> dict[str, Any]:
        """More fields of the job."""
        ...

    def rows(self, output: str) -> str | None:
        """The output, if it isn't on this machine's disk."""
        ...

    def strays(self, count: int) -> int:
        """How many files that the scripts have written are missing, torn, or not theirs."""
        ...


class OnDisk:
    """All of it is on this machine's disk."""

    script = ENTRY_SCRIPT

    def prepare(self, cluster: Cluster) -> None:
        pass

    def inputs(self, cluster: Cluster, count: int) -> Path:
        return cluster.files(count)

    def settings(self) -> dict[str, Any]:
        return {}

    def rows(self, output: str) -> None:
        return None

    def strays(self, count: int) -> int:
        return 0


class InStore:
    """Inputs, rows and what the scripts write are in a store.

    Args:
        server: it runs.
    """

    script = STORE_SCRIPT

    def __init__(self, server: S3Server) -> None:
        self._server = server
        self._client = server.client()
        self._prefix = f"chaos-{secrets.token_hex(6)}"

    def prepare(self, cluster: Cluster) -> None:
        for name in ("master", "concatenator", "api", *cluster.nodes):
            cluster.environments.setdefault(name, {}).update(self._server.environment)
            cluster.environments[name]["XDG_CACHE_HOME"] = str(cluster.home / "cache" / name)

    def inputs(self, cluster: Cluster, count: int) -> str:
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            list(pool.map(self._put, self._names(count)))
        return f"{self._server.bucket_url}/{self._prefix}/in"

    def settings(self) -> dict[str, Any]:
        return {"output": f"{self._server.bucket_url}/{self._prefix}/out"}

    def rows(self, output: str) -> str:
        key = output.removeprefix(f"{self._server.bucket_url}/")
        return str(self._client.get_object(Bucket=BUCKET, Key=key)["Body"].read().decode())

    def strays(self, count: int) -> int:
        wanted = {name: hashlib.md5(name.encode(), usedforsecurity=False).hexdigest() for name in self._names(count)}
        there = dict(self._listed())
        del there["parallel_run_step.txt"]
        unfinished = self._client.list_multipart_uploads(Bucket=BUCKET, Prefix=self._prefix).get("Uploads", ())
        return len(set(wanted.items()) ^ set(there.items())) + len(unfinished)

    def _listed(self) -> Iterator[tuple[str, str]]:
        """The names below the output, with the MD5 of what they have."""
        top = f"{self._prefix}/out/"
        for page in self._client.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=top):
            for each in page.get("Contents", ()):
                yield each["Key"].removeprefix(top), each["ETag"].strip('"')

    def _names(self, count: int) -> list[str]:
        return [f"file-{number:07d}.txt" for number in range(count)]

    def _put(self, name: str) -> None:
        self._client.put_object(Bucket=BUCKET, Key=f"{self._prefix}/in/{name}", Body=name.encode())
