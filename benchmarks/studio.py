"""What the web page asks of the server: pictures of one very large job that has ended, and of one that runs.

Both job folders are made by the product's own writers, with tries of 64 workers. Of the one that has ended: the first
look, until the server has read all of its records; then closer looks at random places, from all of it down to a single
screenful; the bytes of all that the page of a job opens with; the server's memory. Of the one that runs: what it costs
the server, in percent of one CPU, that a page follows it while 200 mini-batches a second are decided: its events, a
picture of the mini-batches every second, all others every five.
"""

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
from statistics import median, quantiles

import httpx
import msgspec

from benchmarks import Size
from benchmarks.measure import own_cpu_seconds, peak_mb
from benchmarks.stage import Stage
from parallelrun_core.folder.decisions import DecisionWriter
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.folder.records import JobResult
from parallelrun_core.masking import Mask
from parallelrun_core.outcome import Failure, Outcome, Use
from parallelrun_core.phases import Phase
from parallelrun_core.progress import Progress
from parallelrun_core.states import JobState
from parallelrun_core.store.leader_queue import LeaderQueue
from parallelrun_master.reports.summaries import Summaries
from parallelrun_master.reports.tries import TryReport

_WORKERS = 64
_IN_RECORD = 200
"""Outcomes that an agent reports together."""
_BEGIN = 1_763_700_000.0
_PICTURES = ("throughput", "timeline", "figures", "errors")
_DECIDED_PER_S = 200


class Writer:
    """Writes what the tries of one job leave in its folder."""

    def __init__(self, folder: JobFolder) -> None:
        self._random = random.Random(1)
        self._ends = [_BEGIN + 2.0] * _WORKERS
        self._log = DecisionWriter(folder.path, 1)
        self._summaries = Summaries(folder.logs)
        self._report = TryReport(folder.logs, Mask({}), self._summaries)
        for worker in range(_WORKERS):
            self._report.add_phase(Phase(f"node{worker // 8}", f"process{worker % 8:03}", "INIT", _BEGIN, 2.0))

    def write(self, first: int, end: int) -> None:
        """The tries of mini-batches, in records as they come from agents, with one failure in a thousand."""
        for at in range(first, end, _IN_RECORD):
            outcomes = [self._outcome(number) for number in range(at, min(at + _IN_RECORD, end))]
            self._log.add(outcomes)
            self._report.add(outcomes, {})
            self._report.flush()
        self._log.sync()

    def close(self) -> None:
        """Write the rest."""
        self._log.close()
        self._report.close()

    def _outcome(self, number: int) -> Outcome:
        worker, run_s = number % _WORKERS, self._random.lognormvariate(-1, 1)
        begin = self._ends[worker]
        self._ends[worker] = begin + run_s + 0.02
        failed = self._random.random() < 0.001
        return Outcome(
            mini_batch=number, generation=0, status="failed" if failed else "done", token=f"{number:x}", tries=1,
            node=f"node{worker // 8}", process=f"process{worker % 8:03}", part="part", offset=number, length=100, crc=1,
            items=10, rows=0 if failed else 10, started=begin, elapsed_s=run_s + 0.02, run_s=run_s, process_s=run_s,
            failure=Failure("RUN_EXCEPTION", f"ValueError: {number}", _TRACEBACK) if failed else None,
            load_s=0.015, use=Use(peak_bytes=50_000_000 + number),
        )  # fmt: skip


_TRACEBACK = 'Traceback (most recent call last):\n  File "score.py", line 12, in run\nValueError: bad'


@contextmanager
def _server(stage: Stage) -> Iterator[tuple[httpx.Client, int]]:
    """An API server over the stage's jobs, and its process id."""
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
            yield client, process.pid
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


def _finished(stage: Stage, count: int) -> str:
    folder, _ = stage.job(inputs="/data")
    writer = Writer(folder)
    writer.write(0, count)
    writer.close()
    progress = Progress(scheduled=count, listing_done=True, published=count, done=count)
    folder.conclude(
        JobResult(job_id=folder.job_id, state=JobState.COMPLETED, started=_BEGIN, ended=time.time(), progress=progress)
    )
    return folder.job_id


def _get(client: httpx.Client, path: str) -> tuple[float, int, httpx.Response]:
    """Milliseconds, bytes on the wire, and the answer."""
    began = time.perf_counter()
    with client.stream("GET", path) as answer:
        size = sum(map(len, answer.iter_raw()))
        took_ms = 1000 * (time.perf_counter() - began)
    if answer.status_code != 200:
        raise RuntimeError(f"{path} is answered with {answer.status_code}")
    return took_ms, size, answer


def _first_look(client: httpx.Client, job: str) -> tuple[float, int, float]:
    """Seconds until all is read, the requests that it took, and the milliseconds of the slowest."""
    began, times = time.perf_counter(), list[float]()
    while True:
        took = time.perf_counter()
        share = client.get(f"/v1/jobs/{job}/tiles").json()["read_share"]
        times.append(1000 * (time.perf_counter() - took))
        if share == 1:
            return time.perf_counter() - began, len(times), max(times)


def _zooms(client: httpx.Client, job: str, count: int, looks: int) -> list[float]:
    """Closer and closer looks at random places, with as many buckets as there may be."""
    chance, times = random.Random(2), list[float]()
    while len(times) < looks:
        width = count
        first = 0
        while width >= 1000 and len(times) < looks:
            times.append(_get(client, f"/v1/jobs/{job}/tiles?first={first}&end={first + width}&buckets=2048")[0])
            width //= 4
            first += chance.randrange(3 * width)
    return times


def _pictures(client: httpx.Client, job: str, looks: int) -> dict[str, float]:
    """The median milliseconds of each other picture, and of the table of the slowest mini-batches."""
    paths = {name: f"/v1/jobs/{job}/{name}" for name in _PICTURES}
    paths["slowest"] = f"/v1/jobs/{job}/mini-batches?order_by=slowest"
    return {name: median(_get(client, path)[0] for _ in range(looks)) for name, path in paths.items()}


def _follow(stage: Stage, client: httpx.Client, pid: int, count: int, seconds: float) -> dict[str, float]:
    """Percent of one CPU that the server uses while a page follows a job that runs."""
    folder, _ = stage.job(inputs="/data")
    queue, writer, half = stage.lead(folder), Writer(folder), count // 2
    writer.write(0, half)
    _first_look(client, folder.job_id)
    enough = threading.Event()
    decided = [half]
    threads = [
        threading.Thread(target=_decide, args=(queue, writer, decided, count, enough)),
        threading.Thread(target=_listen, args=(client, folder.job_id, enough)),
    ]
    for thread in threads:
        thread.start()
    before, began, number, times = own_cpu_seconds(pid), time.perf_counter(), 0, list[float]()
    while (passed := time.perf_counter() - began) < seconds:
        number += 1
        times.append(_get(client, f"/v1/jobs/{folder.job_id}/tiles?buckets=2048")[0])
        for name in _PICTURES if number % 5 == 0 else ():
            _get(client, f"/v1/jobs/{folder.job_id}/{name}")
        enough.wait(max(0.0, number - passed))
    used, passed = own_cpu_seconds(pid) - before, time.perf_counter() - began
    enough.set()
    for thread in threads:
        thread.join()
    writer.close()
    rate = (decided[0] - half) / passed
    return {"percent": 100 * used / passed, "decided_per_s": rate, "tiles_ms": median(times)}


def _decide(queue: LeaderQueue, writer: Writer, decided: list[int], count: int, enough: threading.Event) -> None:
    """What a leader does once a second: record what was decided, and say how far the job is."""
    while not enough.wait(1.0) and decided[0] + _DECIDED_PER_S <= count:
        writer.write(decided[0], decided[0] + _DECIDED_PER_S)
        decided[0] += _DECIDED_PER_S
        progress = msgspec.json.encode(Progress(scheduled=count, listing_done=True, done=decided[0]))
        queue.show({"progress": progress}, event=("progress", progress))


def _listen(client: httpx.Client, job: str, enough: threading.Event) -> None:
    with client.stream("GET", f"/v1/jobs/{job}/events") as events:
        for _ in events.iter_lines():
            if enough.is_set():
                return


def main(size: Size) -> dict[str, object]:
    """Measure; returns what the last line says."""
    count, looks, seconds = {"tiny": (2_000, 6, 2.0), "quick": (1_000_000, 100, 20.0), "full": (1_000_000, 400, 60.0)}[
        size
    ]
    with Stage() as stage:
        job = _finished(stage, count)
        with _server(stage) as (client, pid):
            empty_mb = peak_mb(pid)
            cpu_s = own_cpu_seconds(pid)
            first_s, requests, slowest_ms = _first_look(client, job)
            first_cpu_s = own_cpu_seconds(pid) - cpu_s
            print(f"  first look: {first_s:.1f} s in {requests} requests, the slowest {slowest_ms:.0f} ms", flush=True)
            cpu_s = own_cpu_seconds(pid)
            times = _zooms(client, job, count, looks)
            zoom_cpu_ms = 1000 * (own_cpu_seconds(pid) - cpu_s) / len(times)
            p99 = quantiles(times, n=100)[98]
            print(f"  tiles: {median(times):.1f} ms, p99 {p99:.1f} ms", flush=True)
            pictures = _pictures(client, job, max(3, looks // 10))
            print("  " + ", ".join(f"{name} {took:.1f} ms" for name, took in pictures.items()), flush=True)
            opened = ["", "/tiles?buckets=2048", *(f"/{name}" for name in _PICTURES)]
            opened_bytes = sum(_get(client, f"/v1/jobs/{job}{path}")[1] for path in opened)
            followed = _follow(stage, client, pid, count, seconds)
            server_mb = peak_mb(pid)
        print(f"  following: {followed['percent']:.2f} % of a CPU", flush=True)
    return {
        "mini_batches": count,
        "first_look_s": f"{first_s:.1f}",
        "first_look_cpu_s": f"{first_cpu_s:.1f}",
        "first_look_slowest_ms": f"{slowest_ms:.0f}",
        "zoom_ms": f"{median(times):.1f}",
        "zoom_p99_ms": f"{p99:.1f}",
        "zoom_cpu_ms": f"{zoom_cpu_ms:.1f}",
        **{f"{name}_ms": f"{took:.1f}" for name, took in pictures.items()},
        "opened_kb": f"{opened_bytes / 1000:.1f}",
        "server_mb": f"{server_mb:.0f}",
        "server_mb_at_start": f"{empty_mb:.0f}",
        "following_percent": f"{followed['percent']:.2f}",
        "following_decided_per_s": f"{followed['decided_per_s']:.0f}",
        "following_tiles_ms": f"{followed['tiles_ms']:.1f}",
    }
