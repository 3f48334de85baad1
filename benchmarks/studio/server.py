"""An API server over the jobs of a stage, and what the page asks of it."""

from __future__ import annotations

import os
import random
import secrets
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median
from typing import Final

import httpx

from benchmarks.measure import own_cpu_seconds
from benchmarks.stage import Stage
from benchmarks.studio.records import Running

PICTURES: Final = ("throughput", "timeline", "figures", "errors")


@dataclass
class Server:
    """A server, and somebody who may ask it."""

    client: httpx.Client
    pid: int
    token: str


@contextmanager
def serving(stage: Stage) -> Iterator[Server]:
    """A server over the jobs of a stage."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    token = secrets.token_hex(16)
    environment = {
        **os.environ,
        "PARALLELRUN_REDIS_URL": stage.url,
        "PARALLELRUN_ROOT": str(stage.home),
        "PARALLELRUN_TOKEN": token,
        "PARALLELRUN_AUDIT_LOG": str(stage.home / "audit.log"),
    }
    command = (sys.executable, "-m", "parallelrun_api.main", "--port", str(port))
    with (stage.home / "api.log").open("wb") as log:
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
    headers = {"Authorization": f"Bearer {token}", "Accept-Encoding": "gzip"}
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=60) as client:
            _wait_for(client)
            yield Server(client, process.pid, token)
    finally:
        process.terminate()
        process.wait()


def _wait_for(client: httpx.Client) -> None:
    deadline = time.monotonic() + 30
    while True:
        try:
            if client.get("/readyz").status_code == 200:
                return
        except httpx.TransportError:
            pass
        if time.monotonic() > deadline:
            raise RuntimeError("the API has not started")
        time.sleep(0.02)


def get(client: httpx.Client, path: str) -> tuple[float, int, httpx.Response]:
    """Milliseconds, bytes on the wire, and the answer."""
    began = time.perf_counter()
    with client.stream("GET", path) as answer:
        size = sum(map(len, answer.iter_raw()))
        took_ms = 1000 * (time.perf_counter() - began)
    if answer.status_code != 200:
        raise RuntimeError(f"{path} is answered with {answer.status_code}")
    return took_ms, size, answer


def first_look(client: httpx.Client, job: str) -> tuple[float, int, float]:
    """Seconds until all is read, the requests that it took, and the milliseconds of the slowest."""
    began, times = time.perf_counter(), list[float]()
    while True:
        took = time.perf_counter()
        share = client.get(f"/v1/jobs/{job}/tiles").json()["read_share"]
        times.append(1000 * (time.perf_counter() - took))
        if share == 1:
            return time.perf_counter() - began, len(times), max(times)


def zooms(client: httpx.Client, job: str, looks: int) -> list[float]:
    """Milliseconds of closer and closer looks at random places, with as many buckets as there may be."""
    count = client.get(f"/v1/jobs/{job}").json()["progress"]["scheduled"]
    chance, times = random.Random(2), list[float]()
    while len(times) < looks:
        width = count
        first = 0
        while width >= 1000 and len(times) < looks:
            times.append(get(client, f"/v1/jobs/{job}/tiles?first={first}&end={first + width}&buckets=2048")[0])
            width //= 4
            first += chance.randrange(3 * width)
    return times


def pictures(client: httpx.Client, job: str, looks: int) -> dict[str, float]:
    """The median milliseconds of each other picture, and of the table of the slowest mini-batches."""
    paths = {name: f"/v1/jobs/{job}/{name}" for name in PICTURES}
    paths["slowest"] = f"/v1/jobs/{job}/mini-batches?order_by=slowest"
    return {name: median(get(client, path)[0] for _ in range(looks)) for name, path in paths.items()}


def follow(server: Server, running: Running, seconds: float) -> dict[str, float]:
    """Percent of one CPU that the server uses while a page follows a job that runs."""
    client, job, before_decided = server.client, running.job_id, running.decided
    first_look(client, job)
    enough = threading.Event()
    listener = threading.Thread(target=_listen, args=(client, job, enough))
    with running.at_work():
        listener.start()
        before, began, number, times = own_cpu_seconds(server.pid), time.perf_counter(), 0, list[float]()
        while (passed := time.perf_counter() - began) < seconds:
            number += 1
            times.append(get(client, f"/v1/jobs/{job}/tiles?buckets=2048")[0])
            for name in PICTURES if number % 5 == 0 else ():
                get(client, f"/v1/jobs/{job}/{name}")
            enough.wait(max(0.0, number - passed))
        used, passed = own_cpu_seconds(server.pid) - before, time.perf_counter() - began
        enough.set()
        listener.join()
    rate = (running.decided - before_decided) / passed
    return {"percent": 100 * used / passed, "decided_per_s": rate, "tiles_ms": median(times)}


def _listen(client: httpx.Client, job: str, enough: threading.Event) -> None:
    with client.stream("GET", f"/v1/jobs/{job}/events") as events:
        for _ in events.iter_lines():
            if enough.is_set():
                return
