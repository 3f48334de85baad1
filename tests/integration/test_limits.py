"""Limits hold for all workers of all nodes together, and waiting for them is no time of a mini-batch."""

from __future__ import annotations

import textwrap
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from parallelrun_core.folder.decisions import read_decisions
from parallelrun_core.limits.definition import Limit, limit_catalog
from parallelrun_core.wire.outcome import Outcome
from parallelrun_core.wire.states import JobState
from tests.cluster import Cluster

pytestmark = pytest.mark.integration

CALLS = textwrap.dedent("""
    import asyncio, os, urllib.request
    from parallelrun.script import limit

    def call(name):
        with urllib.request.urlopen(os.environ["SERVICE"] + name) as answer:
            return answer.read().decode()

    async def run(mini_batch):
        rows = []
        for path in mini_batch:
            async with limit("service"):
                rows.append(await asyncio.to_thread(call, os.path.basename(path)))
        return rows
""")
GREEDY = textwrap.dedent("""
    import os
    from parallelrun.script import limit

    async def run(mini_batch):
        [name] = map(os.path.basename, mini_batch)
        async with limit("service", tokens=60_001 if name == "file-0000000.txt" else 1.5):
            return [name]
""")
DIES = textwrap.dedent("""
    import os
    from parallelrun.script import limit
    def run(mini_batch):
        with limit("service"):
            try:
                open(os.path.join(os.environ["FOLDER"], "dead"), "x").close()
            except FileExistsError:
                return [os.path.basename(path) for path in mini_batch]
            os._exit(3)
""")


class Service:
    """A service that counts who calls it."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.most = 0
        self.meets = False
        """The first call waits for another one to be made at the same time."""
        lock, service, now = threading.Condition(), self, 0

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                nonlocal now
                with lock:
                    now += 1
                    service.most = max(service.most, now)
                    service.names.append(self.path[1:])
                    lock.notify_all()
                    lock.wait_for(lambda: service.most > 1 or not service.meets, timeout=30)
                with lock:
                    now -= 1
                self.send_response(200)
                self.end_headers()
                self.wfile.write(self.path[1:].encode())

            def log_message(self, *_: object) -> None: ...

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/"


@pytest.fixture
def service() -> Iterator[Service]:
    counting = Service()
    threading.Thread(target=counting.server.serve_forever, daemon=True).start()
    yield counting
    counting.server.shutdown()
    counting.server.server_close()


def define(root: Path, **numbers: int) -> None:
    limit_catalog(root).define(Limit(name="service", **numbers))


def names(count: int) -> list[str]:
    return [f"file-{number:07d}.txt" for number in range(count)]


def test_limit_on_calls_in_flight_holds_for_all_nodes_together(service: Service) -> None:
    with Cluster(nodes=2, slots=2) as cluster:
        define(cluster.root, in_flight=3)
        service.meets = True
        job = cluster.submit(
            CALLS, inputs=cluster.files(80), mini_batch_size=2, mini_batches_in_flight=8, rate_limits=["service"],
            environment_variables={"SERVICE": service.url},
        )  # fmt: skip
        result = cluster.result(job, timeout_s=120)
        assert cluster.output(result) == names(80)
        assert sorted(service.names) == names(80), "each call was made once"
        assert 1 < service.most <= 3


def test_limit_on_a_rate_is_kept_and_waiting_for_it_is_no_time_of_run(service: Service) -> None:
    with Cluster(nodes=2, slots=1) as cluster:
        define(cluster.root, requests_per_minute=600)
        begun = time.monotonic()
        job = cluster.submit(
            CALLS, inputs=cluster.files(80), mini_batch_size=2, mini_batches_in_flight=20, rate_limits=["service"],
            run_invocation_timeout=4, run_max_try=1, environment_variables={"SERVICE": service.url},
        )  # fmt: skip
        result = cluster.result(job, timeout_s=120)
        assert time.monotonic() - begun >= (80 - 1) / 10 - 0.25
        assert cluster.output(result) == names(80)
        outcomes = [*read_decisions(cluster.folder(job).path)]
        assert {each.status for each in outcomes} == {"done"}
        assert all(each.elapsed_s >= each.run_s + each.waits["service"] - 0.01 for each in outcomes)
        waited_s = sum(each.waits["service"] for each in outcomes)
        assert waited_s > 80 / 10, "most of 40 mini-batches waited for those before them"
        assert result.progress.waits_s["service"] == pytest.approx(waited_s)
        report = (cluster.folder(job).logs / "job_result.txt").read_text()
        assert f"service {100 * waited_s / sum(each.elapsed_s for each in outcomes):.0f} % (" in report


def test_limit_of_which_a_dead_worker_had_the_only_permit_goes_on() -> None:
    with Cluster(nodes=1, slots=2) as cluster:
        define(cluster.root, in_flight=1)
        job = cluster.submit(
            DIES, inputs=cluster.files(6), mini_batch_size=1, rate_limits=["service"],
            environment_variables={"FOLDER": str(cluster.home)},
        )  # fmt: skip
        result = cluster.result(job, timeout_s=120)
        assert result.state is JobState.COMPLETED
        assert cluster.output(result) == names(6)


def test_limit_is_shared_by_jobs_on_all_nodes_whatever_they_ask_for(service: Service) -> None:
    with Cluster(nodes=2, slots=2) as cluster:
        define(cluster.root, requests_per_minute=1200)
        jobs = [
            cluster.submit(
                CALLS, inputs=cluster.files(160), mini_batch_size=1, mini_batches_in_flight=in_flight,
                rate_limits=["service"], environment_variables={"SERVICE": f"{service.url}{name}-"},
            )
            for name, in_flight in (("modest", 8), ("hungry", 64))
        ]  # fmt: skip
        for job in jobs:
            assert cluster.output(cluster.result(job, timeout_s=180)) == [
                f"{'modest' if job is jobs[0] else 'hungry'}-{name}" for name in names(160)
            ]
        callers = [name.split("-")[0] for name in service.names]
        first = max(callers.index("modest"), callers.index("hungry")) + 20  # what was given out ahead
        last = min(len(callers) - callers[::-1].index(name) for name in ("modest", "hungry"))
        both = callers[first:last]
        assert len(both) > 100
        assert 0.4 <= both.count("modest") / len(both) <= 0.6


def test_limit_refuses_a_call_of_more_tokens_than_it_has_and_the_others_go_on() -> None:
    with Cluster(nodes=1, slots=1) as cluster:
        refuse_a_greedy_call(cluster)


def refuse_a_greedy_call(cluster: Cluster) -> None:
    """The proof, with whatever the cluster has of the mechanism."""
    define(cluster.root, tokens_per_minute=60_000)
    job = cluster.submit(
        GREEDY, inputs=cluster.files(20), mini_batch_size=1, mini_batches_in_flight=20, rate_limits=["service"],
        error_threshold=5,
    )  # fmt: skip

    def decided() -> list[Outcome]:
        return [each for each in read_decisions(cluster.folder(job).path) if each.mini_batch == 0]

    cluster.until(lambda: bool(decided()), "the greedy call is decided", 60)
    [outcome] = decided()
    assert outcome.failure is not None
    assert "a call of 60,001 tokens: the limit 'service' has 60,000 in a minute" in outcome.failure.message
    assert cluster.output(cluster.result(job)) == names(20)[1:]


def test_limit_that_a_job_does_not_name_is_refused_in_the_script() -> None:
    with Cluster(nodes=1, slots=1) as cluster:
        define(cluster.root, in_flight=1)
        limit_catalog(cluster.root).define(Limit(name="other", in_flight=1))
        job = cluster.submit(
            CALLS, inputs=cluster.files(1), rate_limits=["other"], run_max_try=1, environment_variables={"SERVICE": ""}
        )
        cluster.result(job)
        [outcome] = read_decisions(cluster.folder(job).path)
        assert outcome.failure is not None
        assert "the job has no limit 'service' among its rate_limits (other)" in outcome.failure.message
