"""Who can write to Redis can't forge what became of a mini-batch: leaders believe what a session has sealed."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from parallelrun_core.folder.decisions import read_decisions
from parallelrun_core.folder.record_log import RecordWriter
from parallelrun_core.ids import new_session
from parallelrun_core.store.agent_queue import AgentQueue
from parallelrun_core.store.keys import JobKeys
from parallelrun_core.store.outcome_stream import Concatenated, report_concatenated
from parallelrun_core.store.seals import Seal
from parallelrun_core.wire.leasing import TurnReports
from parallelrun_core.wire.outcome import decode_list, encode, encode_list
from parallelrun_core.wire.states import JobState
from tests.cluster import Cluster
from tests.integration.queue.job_context import PATIENCE_S, Led
from tests.integration.queue.job_on_redis import LONG_MS, JobOnRedis, decided, returned
from tests.unit.core.factories import outcome
from tests.unit.master import factories

if TYPE_CHECKING:
    from redis import Redis

pytestmark = pytest.mark.integration

COUNT = 4
Fields = dict[str, bytes]


def check_forged_rows(without: str = "") -> None:
    """While a job runs, somebody writes into its stream that each of its mini-batches is done, without any row."""
    with Cluster(without=without) as cluster:
        go = cluster.home / "go"
        script = (
            "import os, time\n"
            "def run(mini_batch):\n"
            f"    while not os.path.exists({str(go)!r}):\n"
            "        time.sleep(0.01)\n"
            "    return mini_batch\n"
        )
        files = cluster.files(COUNT)
        job_id = cluster.submit(script, inputs=files, mini_batch_size=1)
        keys = JobKeys(job_id)
        cluster.until(lambda: cluster.redis.hlen(keys.leases) > 0, "the job runs")
        forged = encode_list([encode(outcome(number, rows=1, items=1)) for number in range(COUNT)])
        cluster.redis.xadd(keys.outcomes, {"r": forged})
        cluster.redis.xadd(keys.outcomes, {"r": forged, "t": Seal("node000-00000000", bytes(32)).on("r", forged)})
        cluster.redis.xadd(keys.outcomes, {"r": "no list"})
        cluster.redis.xadd(keys.outcomes, {"given_up": "0", "message": "", "tries": "1"})
        forged_output = Concatenated("/etc/passwd", 5, "abc")
        report_concatenated(cluster.redis, job_id, forged_output, Seal("concatenator-00000000", bytes(32)))
        cluster.until(
            # One that is no list is refused in any case, which says nothing about the others.
            lambda: (
                bool(decisions(cluster, job_id)) or not (without or not cluster.logged("master", "outcome_refused"))
            ),
            "it is read",
        )
        assert decisions(cluster, job_id) == [], "a forged outcome counts"
        go.touch()
        result = cluster.result(job_id)

        assert result.state is JobState.COMPLETED
        assert [Path(row).name for row in cluster.output(result)] == [f"file-{n:07d}.txt" for n in range(COUNT)]
        assert (result.progress.done, result.progress.failed) == (COUNT, 0)
        assert result.output != "/etc/passwd"


def decisions(cluster: Cluster, job_id: str) -> list[int]:
    return [each.mini_batch for each in read_decisions(cluster.folder(job_id).path)]


@pytest.mark.slow
def test_rows_that_were_never_made_are_not_taken_for_made() -> None:
    check_forged_rows()


@pytest.fixture
def job(redis: Redis) -> JobOnRedis:
    return JobOnRedis(redis)


def reported(job: JobOnRedis, count: int = 2) -> Fields:
    """The fields of an entry in which a session reports that so many are done."""
    job.publish(count)
    agent = job.agent()
    agent.queue.turn("stay", decided(agent.lease(count)), 0)
    entries: Any = job.redis.xrange(job.keys.outcomes)
    job.redis.xtrim(job.keys.outcomes, maxlen=0)
    return {name.decode(): value for name, value in entries[-1][1].items()}


FORGERIES: dict[str, Callable[[Fields, Fields], Fields]] = {
    "without a seal": lambda fields, other: {"r": fields["r"]},
    "an empty seal": lambda fields, other: {**fields, "t": b""},
    "no tag": lambda fields, other: {**fields, "t": fields["t"].partition(b"/")[0] + b"/"},
    "another record": lambda fields, other: {**fields, "r": fields["r"].replace(b'"done"', b'"failed"')},
    "one digit": lambda fields, other: {**fields, "r": fields["r"][:-4] + b"9" + fields["r"][-3:]},
    "one record less": lambda fields, other: {**fields, "r": encode_list([encode(decode_list(fields["r"])[0])])},
    "of another job": lambda fields, other: other,
    "as if of another session": lambda fields, other: {**fields, "t": b"node-1/" + fields["t"].partition(b"/")[2]},
    "as a path": lambda fields, other: {**fields, "t": b"../../keys/" + fields["t"]},
    "of another kind": lambda fields, other: {"phases": fields["r"], "t": fields["t"]},
    "an output": lambda fields, other: {"concatenated": b'["/etc/passwd",1,"a"]', "t": fields["t"]},
    "an index too many": lambda fields, other: {**fields, "i": b"0,1,2"},
    "an index twice": lambda fields, other: {**fields, "i": b"0,0"},
    "an index from the end": lambda fields, other: {**fields, "i": b"-1"},
    "no index": lambda fields, other: {**fields, "i": b"x"},
    "a file": lambda fields, other: {"init_failed": b"[]", "t": b"/dev/zero"},
    "not even text": lambda fields, other: {"r": b"\xff", "t": b"\xff/\xff"},
}


@pytest.mark.parametrize("how", FORGERIES)
def test_what_no_session_of_the_job_has_sealed_is_refused(job: JobOnRedis, how: str) -> None:
    check_refused(job, how)


def check_refused(job: JobOnRedis, how: str) -> None:
    fields, other = reported(job), reported(JobOnRedis(job.redis))
    job.redis.xadd(job.keys.outcomes, FORGERIES[how](fields, other))  # type: ignore[arg-type]
    (entry,) = job.entries()
    assert entry.refused
    assert (entry.outcomes, entry.concatenated, entry.phases, entry.init_failure) == ((), None, (), None)


def test_what_a_session_has_sealed_is_believed(job: JobOnRedis) -> None:
    job.redis.xadd(job.keys.outcomes, reported(job))  # type: ignore[arg-type]
    (entry,) = job.entries()
    assert (entry.refused, [each.mini_batch for each in entry.outcomes]) == ("", [0, 1])


def test_that_an_output_has_to_wait_anybody_may_say(job: JobOnRedis) -> None:
    """On a full disk a concatenator has no key; and who says it in vain delays the output, and changes nothing."""
    reported(job)
    report_concatenated(job.redis, job.job_id, Concatenated("", 0, "", is_postponed=True))
    assert [entry.refused for entry in job.entries()] == [""]


def test_a_part_of_a_list_goes_with_the_seal_of_the_whole(job: JobOnRedis) -> None:
    job.publish(3)
    agent = job.agent()
    held = agent.lease(3)
    agent.queue.turn("stay", returned(held[1:2]), 0)
    agent.queue.turn("stay", decided(held), 0)
    (entry,) = job.entries()
    assert ([each.mini_batch for each in entry.outcomes], entry.encoded) == ([0, 2], b"")


def test_what_is_replayed_or_picked_differently_adds_and_changes_nothing(job: JobOnRedis, tmp_path: Path) -> None:
    """Whoever can write to Redis can repeat what a session has sealed: all are genuine results, the first counts."""
    job.publish(3)
    agent = job.agent()
    held = agent.lease(3)
    agent.queue.turn("stay", returned(held[1:2]), 0)
    agent.queue.turn("stay", decided(held), 0)
    entries: Any = job.redis.xrange(job.keys.outcomes)
    fields = entries[-1][1]
    for indexes in (b"0", b"2", b"0,2", b"0,1,2"):
        job.redis.xadd(job.keys.outcomes, {**fields, b"i": indexes})
    job.redis.xadd(job.keys.outcomes, fields)
    job.keys_folder = tmp_path / "keys"
    job.keys_folder.mkdir()
    (job.keys_folder / agent.name).write_bytes(job.session_keys[agent.name])
    books = factories.ledger(tmp_path, job.leader, 1)
    books.record([each for entry in books.read(block_ms=None) for each in entry.outcomes])
    books.sync_and_trim(1.0, at_once=True)
    books.close()
    taken = list(read_decisions(tmp_path))
    assert sorted(each.mini_batch for each in taken) == [0, 1, 2]
    genuine = {delivery.token for delivery in held}
    assert {each.token for each in taken} <= genuine


# A leader in a thread leaves its files to the end of the process, which is another one otherwise.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_what_an_unknown_session_finished_is_taken_from_its_journal(
    redis: Redis, redis_url: str, tmp_path: Path
) -> None:
    """As after an upgrade, whose older agents seal nothing: the job doesn't hang, and nothing is run again."""
    led = Led(redis, redis_url, tmp_path, 3)
    session = new_session("node")
    queue = AgentQueue(
        redis, led.on_redis.job_id, session=session, node="node", lease_ms=LONG_MS, seal=Seal(session, bytes(32))
    )
    led.folder.layout.make_folders()
    leader = threading.Thread(target=led.run_leader)
    leader.start()
    journal, ran = RecordWriter(led.folder.journals / session), []
    deadline, turn = time.monotonic() + PATIENCE_S, queue.turn("join", TurnReports(), 1)
    while turn.state is not JobState.FINALIZING and time.monotonic() < deadline:
        reports = TurnReports()
        for each in turn.deliveries:
            made = outcome(each.mini_batch, part="", length=0)
            record = encode(msgspec.structs.replace(made, token=each.token))
            journal.append(encode_list([record]))
            journal.sync()
            reports.decided.append((each.mini_batch, each.token, record))
            ran.append(each.mini_batch)
        turn = queue.turn("stay", reports, 1)
        time.sleep(0.005)  # there is no event for what a leader publishes
    queue.turn("leave", TurnReports(), 0)
    leader.join(PATIENCE_S)
    journal.close()
    progress = led.result().progress
    assert (progress.done, progress.failed) == (3, 0)
    assert sorted(ran) == [0, 1, 2]
    del led
    gc.collect()
