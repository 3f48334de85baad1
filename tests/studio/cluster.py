"""The cluster that the tests of the page look at, with jobs of several kinds."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from tests.cluster import Cluster

TOKEN: Final = "a-token-that-is-long-enough-for-this"
HOSTILE: Final = "<img src=x onerror=alert(1)>"

GOOD: Final = """
import time
def init():
    time.sleep(0.05)
def run(mini_batch):
    print("looking at", mini_batch[0])
    number = int(str(mini_batch[0])[-11:-4])
    time.sleep(0.2 if number % 23 == 0 else 0.06)
    return [str(each) for each in mini_batch]
"""
LONG: Final = f"""{GOOD}
def init():
    time.sleep(1.5)  # use is recorded of a node that works for a job for longer than a second
"""
BROKEN: Final = f"""
def run(mini_batch):
    if "3.txt" in str(mini_batch[0]):
        raise ValueError("{HOSTILE} can't be read")
    return [str(each) for each in mini_batch]
"""
SLOW: Final = """
import time
def run(mini_batch):
    print("still at work")
    time.sleep(0.3)
    return [str(each) for each in mini_batch]
"""


@dataclass
class Studio:
    """A cluster, and its jobs by what they are."""

    cluster: Cluster
    jobs: dict[str, str]

    @property
    def url(self) -> str:
        return self.cluster.api_url

    def cookie(self, token: str = TOKEN) -> dict[str, Any]:
        """What a browser has after it has signed in."""
        connection = http.client.HTTPConnection(urlsplit(self.url).netloc, timeout=30)
        connection.request("POST", "/v1/session", json.dumps({"token": token}), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        assert answer.status == 200, answer.read()
        name, _, value = str(answer.getheader("Set-Cookie")).partition(";")[0].partition("=")
        connection.close()
        return {"name": name, "value": value, "url": self.url}

    def live(self) -> str:
        """A job that is at work: a new one if the last one has ended."""
        job = self.jobs.get("live", "")
        if not job or self.cluster.folder(job).has_ended:
            job = self.jobs["live"] = self.submit_slow()
            self.cluster.until(lambda: self.cluster.registry.status(job).progress.done > 3, "it is at work", 60)
        return job

    def submit_slow(self, files: int = 400) -> str:
        """A job that runs for long enough to look at it."""
        return self.cluster.submit(
            SLOW, inputs=self.cluster.files(files), name="long one", mini_batch_size=1, resource_monitor_interval=1
        )

    def failed_pipeline(self) -> str:
        """A pipeline of three steps, of which the second one has failed."""
        if "failed pipeline" not in self.jobs:
            good: dict[str, Any] = {"type": "command", "job": {"command": "echo hello"}, "script": ""}
            bad = {**good, "job": {"command": "echo no >&2; exit 3"}, "after": ["begin"]}
            steps = {"begin": good, "middle": bad, "end": {**good, "after": ["middle"]}}
            job = self.jobs["failed pipeline"] = self.cluster.submit_pipeline("", steps, name="fails in the middle")
            self.cluster.result(job)
        return self.jobs["failed pipeline"]


@contextmanager
def studio() -> Iterator[Studio]:
    """A running cluster whose first jobs have ended."""
    cluster = Cluster(nodes=1, slots=2, api=True, token=TOKEN)
    cluster.environments["api"]["PARALLELRUN_COST_PER_SLOT_HOUR"] = "0.05"
    with cluster:
        files = cluster.files(60)
        jobs = {
            "good": cluster.submit(
                GOOD,
                inputs=files,
                name="good one",
                mini_batch_size=1,
                tags={"team": HOSTILE},
                profiling_module="cProfile",
                resource_monitor_interval=1,
            ),
            "broken": cluster.submit(
                BROKEN, inputs=files, name="broken one", mini_batch_size=1, error_threshold=2, run_max_try=2
            ),
        }
        score: dict[str, Any] = {"job": {"inputs": {"data": {"path": str(files)}}, "mini_batch_size": 20}}
        command: dict[str, Any] = {"type": "command", "job": {"command": "echo hello"}, "script": ""}
        jobs["pipeline"] = cluster.submit_pipeline(
            GOOD,
            {
                "prepare": command,
                "score": {**score, "script": LONG, "after": ["prepare"]},
                "check": {**command, "after": ["prepare"]},
                "report": {**command, "after": ["score", "check"]},
            },
            name="nightly",
        )
        for job in jobs.values():
            cluster.result(job)
        yield Studio(cluster, jobs)
