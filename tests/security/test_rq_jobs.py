"""Who can write to Redis can't run code in a master or a concatenator: RQ would call whatever an entry names."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from redis import Redis
from rq import Queue
from rq.serializers import DefaultSerializer, JSONSerializer

from parallelrun_core.ids import new_job_id
from parallelrun_core.store.rq.entries import CONCATENATE, LEAD, Entry, EntryKind, queue
from parallelrun_core.wire.states import JobState
from tests.cluster import Cluster

IDENTITY = "def run(mini_batch):\n    return mini_batch\n"
SERVICES = {"master": LEAD, "concatenator": CONCATENATE}


def attack(redis: Redis, kind: EntryKind, marks: Path) -> dict[str, str]:
    """Entries that would each leave a mark of its name, were they run; id → name."""
    marks.mkdir(exist_ok=True)
    as_json = Queue(kind.queue, connection=redis, serializer=JSONSerializer)
    pickled = Queue(kind.queue, connection=redis, serializer=DefaultSerializer)
    put = {
        "json": as_json.enqueue("os.system", f"touch {marks}/json"),
        "pickle": pickled.enqueue("os.system", f"touch {marks}/pickle"),
        "other-function": as_json.enqueue("os.mkdir", f"{marks}/other-function"),
        "no-job": as_json.enqueue(kind.function, f"../../{marks}"),
        "keywords": as_json.enqueue(kind.function, kwargs={"job_id": new_job_id()}),
    }
    redis.hset("rq:job:unreadable", mapping={"data": "[]", "status": "no such status"})
    redis.rpush(as_json.key, "unreadable")
    redis.set("rq:job:no-hash", "")
    redis.rpush(as_json.key, "no-hash")
    return {**{job.id: name for name, job in put.items()}, "unreadable": "unreadable", "no-hash": "no-hash"}


@pytest.mark.integration
@pytest.mark.parametrize("service", SERVICES)
def test_an_entry_that_names_another_function_is_refused_and_work_goes_on(service: str) -> None:
    check_attack(service)


def check_attack(service: str, without: str = "") -> None:
    """Attack a service of a cluster, and submit a job."""
    with Cluster(without=without) as cluster:
        kind, marks = SERVICES[service], cluster.home / "marks"
        put = attack(cluster.redis, kind, marks)
        cluster.until(lambda: put.keys() <= refused(cluster, service, kind).keys() or any(marks.iterdir()), "an answer")
        assert list(marks.iterdir()) == [], "something ran"
        result = cluster.result(cluster.submit(IDENTITY, inputs=cluster.files(3)))

        assert result.state is JobState.COMPLETED
        assert refused(cluster, service, kind).keys() == put.keys()
        assert list(marks.iterdir()) == [], "something ran"
        assert "touch" not in cluster.log(service), "what somebody else has written is not logged"
        assert not [id for id in put if id not in ("unreadable", "no-hash") and cluster.redis.exists(f"rq:job:{id}")]
        assert not set(queue(cluster.redis, kind).job_ids) & set(put)


def refused(cluster: Cluster, service: str, kind: EntryKind) -> dict[str, str]:
    """The entries of a queue that a service says to have refused: id → reason."""
    lines = [json.loads(line) for line in cluster.log(service).splitlines() if line.startswith("{")]
    return {
        line["rq_job"]: line["reason"]
        for line in lines
        if line["action"] == "rq_job_refused" and line["queue"] == kind.queue
    }


@pytest.mark.integration
def test_of_an_entry_that_may_run_nothing_but_the_job_is_believed(redis: Redis) -> None:
    """Its callbacks, webhooks, retries and time limit are somebody else's."""
    job_id, called = new_job_id(), list[str]()
    put = Queue(LEAD.queue, connection=redis, serializer=JSONSerializer).enqueue(LEAD.function, job_id, job_timeout=1)
    redis.hset(
        put.key,
        mapping={
            "success_callback_name": "os.system",
            "failure_callback_name": "os.system",
            "stopped_callback_name": "os.system",
            "webhooks": json.dumps([{"url": "http://127.0.0.1:1", "job_status": "finished"}]),
            "retries_left": 3,
            "meta": DefaultSerializer.dumps({"a": 1}),
        },
    )
    entry = queue(redis, LEAD, called.append).fetch_job(put.id)
    assert isinstance(entry, Entry)
    callbacks: list[Callable[..., object] | None] = [
        entry.success_callback, entry.failure_callback, entry.stopped_callback
    ]  # fmt: skip
    assert callbacks == [None] * 3
    assert (entry.webhooks, entry.retries_left, entry.meta, entry.timeout) == ([], None, {}, -1)
    entry.perform()
    assert called == [job_id]


@pytest.mark.integration
@pytest.mark.parametrize(
    "words",
    [
        ["os.system", None, ["job_00000000000000000000"], {}],
        [LEAD.function, "instance", ["job_00000000000000000000"], {}],
        [LEAD.function, None, ["job_00000000000000000000", "more"], {}],
        [LEAD.function, None, ["job_00000000000000000000"], {"more": 1}],
        [LEAD.function, None, ["job_../../../../etc/passwd"], {}],
        [LEAD.function, None, [["job_00000000000000000000"]], {}],
        [CONCATENATE.function, None, ["job_00000000000000000000"], {}],
        {},
    ],
    ids=str,
)
def test_anything_but_the_function_of_a_queue_with_one_job_is_refused(redis: Redis, words: object) -> None:
    called = list[str]()
    redis.hset("rq:job:entry", mapping={"data": json.dumps(words), "origin": LEAD.queue})
    entry = queue(redis, LEAD, called.append).fetch_job("entry")
    assert isinstance(entry, Entry)
    assert entry.requested_job_id() is None
    with pytest.raises(PermissionError):
        entry.perform()
    assert called == []


@pytest.mark.integration
def test_an_entry_that_is_nested_without_end_is_refused(redis: Redis) -> None:
    redis.hset("rq:job:entry", mapping={"data": "[" * 1_000_000, "origin": LEAD.queue})
    entry = queue(redis, LEAD).fetch_job("entry")
    assert isinstance(entry, Entry)
    assert entry.requested_job_id() is None
