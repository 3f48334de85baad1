"""A job of many short mini-batches that lasts until the test has done what it wants to do to it."""

from __future__ import annotations

import secrets
import zlib
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from tests.acceptance.http_user import HttpUser, zip_of

COUNT = 5000
OUTPUT = "rows.txt"

SCRIPT = """
import os, random, sys, time, zlib
def run(mini_batch):
    if not os.path.exists(sys.argv[sys.argv.index("--hurry") + 1]):
        time.sleep(random.choice((0, 0.02, 0.5)))
    names = [os.path.basename(path) for path in mini_batch]
    return [f"{name} {zlib.crc32(name.encode())}" for name in names]
"""
"""Takes its time until the file is there that its argument names; each row carries a checksum of itself."""


@dataclass(frozen=True)
class Many:
    """One such job; made by `submit`."""

    user: HttpUser
    job_id: str
    _hurry: Path

    @classmethod
    def submit(cls, user: HttpUser, inputs: Path) -> Many:
        """Submit one to a cluster of containers, which know the folder as /inputs."""
        folder = inputs / "many"
        if not folder.exists():
            folder.mkdir()
            folder.chmod(0o755)
            for name in names():
                (folder / name).touch()
        hurry = inputs / f"hurry-{secrets.token_hex(4)}"
        spec = {
            "entry_script": "entry.py",
            "program_arguments": f"--hurry {PurePosixPath('/inputs') / hurry.name}",
            "inputs": {"files": "/inputs/many"},
            "mini_batch_size": 1,
            "append_row_file_name": OUTPUT,
            "error_threshold": 0,
        }
        return cls(user, user.submit(spec, zip_of({"entry.py": SCRIPT})), hurry)

    def until(self, what: str, **at_least: int) -> dict[str, Any]:
        """Wait until these counts are reached, while the job goes on; returns the progress."""
        job = self.user.until(
            self.job_id,
            lambda job: all(job["progress"][name] >= count for name, count in at_least.items()),
            f"{what}: {at_least}",
        )
        assert job["state"] == "processing", f"{what}: the job was too short for this test"
        return dict(job["progress"])

    def until_worked(self, nodes: int) -> None:
        """Wait until so many nodes have done some of it."""
        done = 0
        while len(self.nodes()) < nodes:
            done = self.until(f"{nodes} nodes work", done=done + 1)["done"]

    def nodes(self) -> set[str]:
        """The nodes that have done some of it."""
        found, page = set(), ""
        while True:
            answer = self.user.client.get(
                f"/v1/jobs/{self.job_id}/mini-batches", params={"limit": 1000, "status": "done", "page_token": page}
            )
            listed = answer.raise_for_status().json()
            found |= {entry["node"] for entry in listed["items"]}
            page = listed.get("next_page_token")
            if not page:
                return found

    def finish(self) -> dict[str, Any]:
        """Let it come to its end, see that every row is there once, and return the final progress."""
        self.until("there is something left to do", scheduled=COUNT)
        self._hurry.touch()
        progress = dict(self.user.completed(self.job_id)["progress"])
        assert self.user.download(self.job_id, OUTPUT).decode().splitlines() == [
            f"{name} {zlib.crc32(name.encode())}" for name in names()
        ]
        assert (progress["items_done"], progress["rows"], progress["failed"]) == (COUNT, COUNT, 0)
        return progress


def names() -> list[str]:
    """The items, in order."""
    return [f"item-{number:05}" for number in range(COUNT)]
