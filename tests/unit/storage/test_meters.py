"""What is counted of requests to stores, and what is told of it."""

from __future__ import annotations

import errno
import re
import secrets
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from parallelrun_core.folder.storage_report import RequestReport, fields_of
from parallelrun_core.hosting.storage_metrics import StorageCollector
from parallelrun_core.storage.objects import meters
from parallelrun_core.storage.objects.meters import BOUNDS, RequestCounts, asked_again, metered, reading, since
from parallelrun_core.storage.objects.trouble import Missing, StoreError, Throttled


@pytest.fixture
def store() -> str:
    return f"s3://bucket-{secrets.token_hex(8)}"


def asked_of(store: str) -> dict[str, RequestCounts]:
    return {operation: asked for (of, operation), asked in reading().items() if of == store}


def latencies_of(*seconds: float) -> RequestCounts:
    counts = [0] * (len(BOUNDS) + 1)
    for each in seconds:
        counts[next((number for number, bound in enumerate(BOUNDS) if each <= bound), len(BOUNDS))] += 1
    return RequestCounts(len(seconds), latencies=tuple(counts), longest_s=max(seconds))


def test_a_call_is_counted_with_its_bytes_by_store_and_operation(store: str) -> None:
    for _ in range(3):
        with metered(f"{store}/a/b", "get") as call:
            call.bytes = 100
    with metered(f"{store}/a", "list"):
        pass

    asked = asked_of(store)

    assert {name: (each.requests, each.bytes, sum(each.latencies)) for name, each in asked.items()} == {
        "get": (3, 300, 3),
        "list": (1, 0, 1),
    }
    assert 0 < asked["get"].seconds < 1


@pytest.mark.parametrize(
    "error, failures, throttled",
    [(StoreError, 1, 0), (Throttled, 1, 1), (Missing, 0, 0), (KeyboardInterrupt, 0, 0)],
)
def test_what_counts_as_a_failure(store: str, error: type[BaseException], failures: int, throttled: int) -> None:
    with suppress(error), metered(f"{store}/a", "get"):
        raise error(errno.EIO, "words", f"{store}/a")

    asked = asked_of(store)["get"]

    assert (asked.requests, asked.failures, asked.throttled) == (1, failures, throttled)


def test_a_call_that_was_none_and_repeats(store: str) -> None:
    with metered(f"{store}/a", "list") as call:
        call.requests = 0
    assert asked_of(store) == {}

    asked_again(f"{store}/a", "get")
    with metered(f"{store}/a", "put") as call:
        call.requests, call.retries = 5, 2

    asked = asked_of(store)
    assert (asked["get"].requests, asked["get"].retries) == (0, 1)
    assert (asked["put"].requests, asked["put"].retries, sum(asked["put"].latencies)) == (5, 2, 1)


def test_only_what_came_since_a_reading_is_told(store: str) -> None:
    with metered(f"{store}/a", "get") as call:
        call.bytes = 7
    with metered(f"{store}/a", "head"):
        pass
    before = reading()
    with metered(f"{store}/a", "get") as call:
        call.bytes = 5

    (((of, operation), asked),) = since(before).items()

    assert (of, operation, asked.requests, asked.bytes, sum(asked.latencies)) == (store, "get", 1, 5, 1)


def test_many_threads_lose_no_count(store: str) -> None:
    def ask(_: int) -> None:
        for _ in range(500):
            with metered(f"{store}/a", "get") as call:
                call.bytes = 2

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(ask, range(8)))

    assert (asked_of(store)["get"].requests, asked_of(store)["get"].bytes) == (4000, 8000)


def test_percentiles_lie_in_the_bucket_of_the_call_that_they_are_of() -> None:
    asked = latencies_of(*[0.004] * 90, *[0.06] * 8, 4.0, 90.0)

    assert 0.003 < asked.latency_s(0.5) <= 0.005
    assert 0.05 < asked.latency_s(0.95) <= 0.07
    assert 3.0 < asked.latency_s(0.99) <= 5.0
    assert asked.latency_s(1) == 90.0
    assert RequestCounts().latency_s(0.5) == 0.0
    assert latencies_of(0.0041).latency_s(0.99) == pytest.approx(0.0041, rel=0.02)  # never above the longest


def test_any_number_of_stores_takes_a_bounded_number_of_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(meters, "_METERS", {})
    monkeypatch.setattr(meters, "_STORES", set())
    for number in range(1000):
        with metered(f"https://host{number}/file", "get"):
            pass

    stores = {store for store, _ in reading()}

    assert len(stores) == 65
    assert reading()[meters.OTHERS, "get"].requests == 936


def test_the_report_has_the_sums_since_it_began(store: str, tmp_path: Path) -> None:
    with metered(f"{store}/a", "get"):
        pass
    report = RequestReport(tmp_path, "node7")
    report.write()
    assert not (tmp_path / "sys").exists()  # nothing was asked since

    for size in (10, 20):
        with metered(f"{store}/a", "get") as call:
            call.bytes = size
        report.write()

    (path,) = (tmp_path / "sys" / "storage").iterdir()
    (line,) = fields_of(path.read_text())
    assert re.fullmatch(r"node7\.[0-9TZ.-]+\.csv", path.name)
    assert (line["node"], line["store"], line["operation"]) == ("node7", store, "get")
    assert (line["requests"], line["bytes"], line["failures"]) == ("2", "30", "0")
    assert line["since"] < line["until"] or line["since"] == line["until"]
    assert float(line["p50_ms"]) <= float(line["p99_ms"])


def test_what_prometheus_sees(store: str) -> None:
    with metered(f"{store}/a", "get") as call:
        call.bytes = 5
    registry = CollectorRegistry()
    registry.register(StorageCollector(lambda: {(store, "get"): asked_of(store)["get"]}))

    text = generate_latest(registry).decode()

    label = f'{{operation="get",store="{store}"}}'
    assert f"parallelrun_storage_requests_total{label} 1.0" in text
    assert f"parallelrun_storage_bytes_total{label} 5.0" in text
    assert f"parallelrun_storage_seconds_count{label} 1.0" in text
    assert f'parallelrun_storage_seconds_bucket{{le="+Inf",operation="get",store="{store}"}} 1.0' in text


FORKS = """
import os
from parallelrun_core.hosting.storage_totals import StorageTotals
from parallelrun_core.storage.objects.meters import metered

def ask(job_id):
    with metered("s3://bucket/" + job_id, "get") as call:
        call.bytes = 5

totals = StorageTotals()
run = totals.handed_over(ask)
for job_id in ("job1", "job2"):
    child = os.fork()
    if not child:
        run(job_id)
        run(job_id)  # one process may work for several jobs
        os._exit(0)
    os.waitpid(child, 0)
for _ in range(2):
    for (store, operation), asked in totals.reading().items():
        print(store, operation, asked.requests, asked.bytes, sum(asked.latencies))
"""


def test_what_forked_processes_have_asked_is_added_up() -> None:
    done = subprocess.run([sys.executable, "-c", FORKS], check=True, capture_output=True, text=True, timeout=60)

    assert done.stdout.splitlines() == ["s3://bucket get 4 20 4"] * 2
