"""One node's work for one job, with real workers and a real queue: user code must not bring down the agent."""

from __future__ import annotations

import os
import re
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from parallelrun_agent.jobs.joining import join_job
from parallelrun_agent.loop import EventLoop
from parallelrun_agent.node_context import NodeContext
from parallelrun_agent.policy.commands import NextTurn
from parallelrun_agent.settings import AgentSettings
from parallelrun_agent.staging.place import StagePlace
from parallelrun_agent.workers.gpus import GpuPool
from parallelrun_agent.workers.job_code import JobCode
from parallelrun_agent.workers.orphans import Orphans
from parallelrun_agent.workers.templates import WorkerTemplates
from parallelrun_core.code import snapshots
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.folder.records import JobRecord, Reopening
from parallelrun_core.layout import code_store
from parallelrun_core.service.process_secrets import ProcessSecrets
from parallelrun_core.spec import JobSpec
from parallelrun_core.store.agent_queue import AgentQueue
from parallelrun_core.wire.leasing import MAX_REPORTS, Mode, Turn, TurnReports
from parallelrun_core.wire.message import encode_files
from parallelrun_core.wire.outcome import InitFailure, Outcome
from parallelrun_core.wire.states import JobState
from tests.integration.queue.job_on_redis import JobOnRedis
from tests.integration.worker.template_harness import as_parent
from tests.unit.agent.factories import machine

if TYPE_CHECKING:
    from redis import Redis

pytestmark = pytest.mark.integration

PATIENCE_S = 10.0


class Node:
    """A `NodeJob` in a loop as the agent's."""

    def __init__(self, redis: Redis, root: Path, script: str, *, slots: int = 1, **fields: Any) -> None:
        self.on_redis = JobOnRedis(redis)
        # As it is with a job that was moved there.
        redis.xadd(self.on_redis.keys.outcomes, {"state": JobState.PROCESSING})
        code = root / "code-folder"
        code.mkdir()
        (code / "score.py").write_text(textwrap.dedent(script))
        spec = JobSpec.parse({"entry_script": "score.py", "inputs": "/in", "run_max_try": 1, **fields})
        folder = JobFolder(root, self.on_redis.job_id)
        snapshot = snapshots.snapshot_folder(code, code_store(root))
        folder.create(JobRecord(job_id=folder.job_id, submitted=1.0, code=snapshot, spec=spec.model_dump(mode="json")))
        folder.layout.make_folders()
        self.on_redis.keys_folder = folder.keys
        self.loop = EventLoop()
        settings = AgentSettings(
            root=root, work_dir=root / "work", node="node", slots=slots, lease_seconds=600, sync=False
        )
        node = NodeContext(self.loop, Orphans(), GpuPool([]), StagePlace(root / "cache", 0), ProcessSecrets(""))
        self.parts = (redis, folder, settings, node)
        self.job = join_job(*self.parts)
        self.job.turn(time.monotonic())

    def join(self) -> None:
        """The agent has seen that it is over, and that there is work."""
        self.job.close()
        self.job = join_job(*self.parts)
        self.job.turn(time.monotonic())

    def publish(self, *names: str) -> None:
        first = self.on_redis.leader.checkpoint()
        files = [encode_files([(b"/in", [name.encode("utf-8", "surrogateescape")])], 1) for name in names]
        self.on_redis.leader.publish(first, files)
        self.job.observed(JobState.PROCESSING, len(names), 1)

    def step(self) -> None:
        self.loop.poll(0.02)
        now = time.monotonic()
        self.job.check_time(now)
        self.job.turn(now)
        if not self.job.is_over and self.job.wanted_workers(now) > 0:
            self.job.spawn()

    def until(self, condition: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            assert time.monotonic() < deadline, f"{what}; {self.on_redis.outcomes()}"
            self.step()

    def decided(self, count: int) -> dict[int, Outcome]:
        """Go on until so many are decided."""
        self.until(lambda: len(self.on_redis.outcomes()) >= count, f"{count} are decided")
        return {outcome.mini_batch: outcome for outcome in self.on_redis.outcomes()}

    def init_failures(self) -> list[InitFailure]:
        entries = self.on_redis.entries()
        return [entry.init_failure for entry in entries if entry.init_failure is not None]


@pytest.fixture
def node(redis: Redis, tmp_path: Path) -> Iterator[Callable[..., Node]]:
    """Start a node that works for one job with this entry script."""
    started: list[Node] = []

    def begin(script: str, **fields: Any) -> Node:
        started.append(Node(redis, tmp_path, script, **fields))
        return started[-1]

    yield begin
    for each in started:
        each.job.close()
        each.loop.close()


def test_mini_batches_are_run_and_committed(node: Callable[..., Node]) -> None:
    cluster = node("def run(items): return items", slots=2)
    cluster.publish(*"abcdefgh")
    decided = cluster.decided(8)
    assert sorted(decided) == list(range(8))
    assert {outcome.status for outcome in decided.values()} == {"done"}
    parts = cluster.job.folder.parts
    rows = b"".join(
        (parts / each.part).read_bytes()[each.offset : each.offset + each.length] for _, each in sorted(decided.items())
    )
    assert rows.decode().split() == [f"/in/{name}" for name in "abcdefgh"]
    assert cluster.on_redis.leases() == {}


def test_a_node_that_allows_no_more_threads_joins_later_and_keeps_nothing_open(
    node: Callable[..., Node], monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = node("def run(items): return items")
    cluster.publish("a")
    started, start = list[str](), threading.Thread.start
    allowed = refusals = 0

    def starts(thread: threading.Thread) -> None:
        if len(started) == allowed:
            raise RuntimeError("can't start new thread")
        started.append(thread.name)
        start(thread)

    cluster.job.close()
    before = len([*Path("/proc/self/fd").iterdir()])
    monkeypatch.setattr(threading.Thread, "start", starts)
    while refusals == allowed:  # each of them is refused once
        started.clear()
        try:
            join_job(*cluster.parts).close()
        except BlockingIOError:
            refusals += 1
        assert len([*Path("/proc/self/fd").iterdir()]) == before
        allowed += 1
    assert started == ["code", "committer", "resources"]
    monkeypatch.undo()
    cluster.join()
    assert cluster.decided(1)[0].status == "done"


def test_damage_to_code_whose_name_is_not_utf_8_can_be_reported(tmp_path: Path) -> None:
    code, name = tmp_path / "code-folder", os.fsdecode(b"caf\xe9.py")
    code.mkdir()
    (code / name).touch()
    stored = code_store(tmp_path) / snapshots.snapshot_folder(code, code_store(tmp_path))
    (stored / name).chmod(0o644)
    (stored / name).write_text("changed")
    known = threading.Event()
    check = JobCode(stored, known.set)
    assert known.wait(PATIENCE_S)
    failure = check.take_failure()
    assert failure is not None
    assert b"was changed" in msgspec.json.encode(InitFailure("node", "", failure))


def test_how_many_workers_a_job_wants_begins_no_template(node: Callable[..., Node]) -> None:
    cluster = node("def run(items): return items", slots=2)
    orphans = Orphans()
    orphans.begin(lambda: True)
    with as_parent(), closing(WorkerTemplates(cluster.loop, orphans)) as templates:
        cluster.job._driver.session.processes._templates = templates
        cluster.publish(*"ab")
        now = time.monotonic()
        wanted = 0
        while wanted != 2:
            cluster.loop.poll(0.02)
            cluster.job.turn(time.monotonic())
            wanted = cluster.job.wanted_workers(now)
            assert not templates._running
            assert time.monotonic() < now + PATIENCE_S
        assert cluster.job.awaits_template(now)
        assert len(templates._running) == 1
        assert cluster.job.wanted_workers(now) == 2, "it wants them while it waits, too"


def test_the_protocol_names_what_a_worker_is_told(node: Callable[..., Node]) -> None:
    script = "import json\ndef run(items): return list(json.load(open('.worker.json')))"
    cluster = node(script)
    cluster.publish("a")
    done = cluster.decided(1)[0]
    told = (cluster.job.folder.parts / done.part).read_text().split()
    page = (Path(__file__).parents[3] / "docs" / "protocol.md").read_text()
    table = page.partition("| key of the JSON file |")[2].partition("\n\n")[0]
    named = [key for line in table.splitlines()[2:] for key in re.findall(r"`(\w+)`", line.split(" | ")[0])]
    assert sorted(told) == sorted(named)


@pytest.mark.parametrize("error", ["ValueError(items[0])", "ValueError('\\ud800 \\udcff')"])
def test_an_error_with_a_name_that_is_no_utf_8_fails_its_mini_batch_and_nothing_else(
    node: Callable[..., Node], error: str
) -> None:
    cluster = node(f"def run(items):\n    if 'bad' in items[0]: raise {error}\n    return items")
    cluster.publish("good", "bad\udcff", "good too")
    decided = cluster.decided(3)
    assert [decided[number].status for number in range(3)] == ["done", "failed", "done"]


def test_an_error_in_init_with_a_name_that_is_no_utf_8_is_told(node: Callable[..., Node]) -> None:
    cluster = node("def init(): raise ValueError('\\udcff')\ndef run(items): return items")
    cluster.publish("a")
    cluster.until(lambda: bool(cluster.init_failures()), "the leader is told")
    assert cluster.init_failures()[0].failure.category == "INIT_EXCEPTION"


@pytest.mark.parametrize("script", ["import os\nos._exit(3)\n", "import os\ndef init(): os.abort()\n"])
def test_a_worker_that_dies_before_its_first_mini_batch_is_told_to_the_leader(
    node: Callable[..., Node], script: str
) -> None:
    cluster = node(script + "def run(items): return items")
    cluster.publish("a")
    cluster.until(lambda: bool(cluster.init_failures()), "the leader is told")
    failure = cluster.init_failures()[0].failure
    assert failure.category == "INIT_DIED"
    assert cluster.on_redis.outcomes() == []


def test_a_worker_that_cannot_be_started_is_told_to_the_leader_and_the_agent_lives(node: Callable[..., Node]) -> None:
    cluster = node("def run(items): return items", environment_variables={"LARGE": "x" * 200_000})
    cluster.publish("a")
    cluster.until(lambda: bool(cluster.init_failures()), "the leader is told")


@pytest.mark.parametrize("garbage", ["b'x' * 1000", "bytes(50)", "b'\\x03\\x05\\0\\0\\0short'", "b'\\x04' * 40"])
def test_whoever_writes_into_our_pipe_harms_only_himself(node: Callable[..., Node], garbage: str) -> None:
    """A script that writes to every descriptor that it finds."""
    cluster = node(
        f"""
        import os
        def run(items):
            if "bad" in items[0]:
                for fd in range(3, 50):
                    try:
                        if os.readlink(f"/proc/self/fd/{{fd}}").startswith("pipe:"):
                            os.write(fd, {garbage})
                    except OSError:
                        pass
            return items
        """,
        run_invocation_timeout=2,
    )
    cluster.publish("good", "bad", "good too")
    decided = cluster.decided(3)
    assert (decided[0].status, decided[2].status) == ("done", "done")


def test_the_head_alone_is_charged_for_a_death(node: Callable[..., Node]) -> None:
    cluster = node("import os\ndef run(items):\n    if 'bad' in items[0]: os.abort()\n    return items")
    cluster.publish("a", "b", "bad", "c", "d")
    decided = cluster.decided(5)
    assert [decided[number].status for number in range(5)] == ["done", "done", "failed", "done", "done"]
    assert {outcome.tries for outcome in decided.values()} == {1}
    failure = decided[2].failure
    assert failure is not None
    assert failure.category == "SIGNAL"


def test_the_time_that_redis_takes_is_not_the_run_timeouts(
    node: Callable[..., Node], monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = node("import time\ndef run(items):\n    time.sleep(0.2)\n    return items", run_invocation_timeout=1)
    cluster.publish("first")
    cluster.decided(1)
    turn = AgentQueue.turn

    def slow(queue: AgentQueue, mode: Mode, reports: TurnReports, want: int) -> Turn:
        answer = turn(queue, mode, reports, want)
        if answer.deliveries:
            time.sleep(1.5)
        return answer

    monkeypatch.setattr(AgentQueue, "turn", slow)
    cluster.publish("second")
    assert cluster.decided(2)[1].status == "done"


def test_a_node_that_leaves_with_more_to_say_than_fits_says_it_all_first(redis: Redis) -> None:
    on_redis, node = JobOnRedis(redis), machine()
    queue, count = on_redis.agent().queue, MAX_REPORTS + 500
    on_redis.publish(count)

    def take(turn: NextTurn) -> None:
        now = time.monotonic()
        node.answered_turn(turn, queue.turn(turn.mode, turn.reports, turn.want), sent_at=now, now=now)

    steps: list[tuple[Mode, int]] = [("join", MAX_REPORTS), ("stay", 500)]
    for mode, want in steps:
        take(NextTurn(mode, TurnReports(), want))  # no worker is here to take any of it
    assert len(on_redis.leases()) == count
    node.drain(5.0, time.monotonic())
    while not node.membership.is_over:
        turn = node.next_turn(time.monotonic())
        assert turn is not None
        take(turn)
    assert on_redis.leases() == {}
    assert len(on_redis.ready()) == count


def test_a_session_that_was_given_up_while_the_job_ends_leaves_once(node: Callable[..., Node]) -> None:
    cluster = node("def run(items): return items")
    cluster.publish("a")
    cluster.decided(1)
    cluster.on_redis.force(JobState.FINALIZING)
    cluster.job.observed(JobState.FINALIZING, 0, 1)
    cluster.step()
    cluster.on_redis.redis.delete(cluster.on_redis.keys.sessions)
    cluster.until(lambda: cluster.job.is_over, "it leaves")
    assert list(cluster.on_redis.leader.sessions()) == []


def test_a_session_that_cannot_be_opened_leaves_nothing_open(
    node: Callable[..., Node], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise OSError("no room")

    cluster = node("def run(items): return items")
    cluster.publish("a")
    cluster.decided(1)
    monkeypatch.setattr("parallelrun_agent.jobs.session.WorkerProcesses", fails)
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - only how many
    with pytest.raises(OSError, match="no room"):
        join_job(*cluster.parts)
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208
    cluster.on_redis.redis.delete(cluster.on_redis.keys.sessions)
    cluster.until(lambda: cluster.job.is_over, "it leaves when its session is lost")
    cluster.job.close()
    assert "committer" not in [thread.name for thread in threading.enumerate()]


def test_a_node_that_was_away_while_its_job_failed_and_was_retried_joins_it_afresh(node: Callable[..., Node]) -> None:
    cluster = node("def run(items): return items")
    cluster.publish("a")
    cluster.decided(1)
    folder, on_redis = cluster.job.folder, cluster.on_redis
    on_redis.force(JobState.FAILED)
    folder.reopen(Reopening(generation=1, at=1.0, retry_failed=True))
    on_redis.reopen()
    cluster.publish("a")
    cluster.until(lambda: cluster.job.is_over, "it is over with what it had joined")
    cluster.join()
    assert cluster.decided(1)[0].generation == 1


def test_an_orderly_end_lets_every_worker_shut_down(node: Callable[..., Node], tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    cluster = node(f"def run(items): return items\ndef shutdown(): open({str(mark)!r}, 'a').write('x')", slots=2)
    cluster.publish(*"abcd")
    cluster.decided(4)
    cluster.until(lambda: all(worker.is_through_init for worker in cluster.job.workers), "nobody is in init() any more")
    workers = len(cluster.job.workers)
    cluster.on_redis.force(JobState.FINALIZING)
    cluster.job.observed(JobState.FINALIZING, 0, 1)
    cluster.until(lambda: cluster.job.is_over, "it leaves")
    assert mark.read_text() == "x" * workers


def test_a_worker_that_can_be_handed_nothing_any_more_is_replaced_at_nobodys_cost(node: Callable[..., Node]) -> None:
    """Its script has put a file where a long list of files would wait for it."""
    cluster = node("""
        import os
        def run(items):
            if items[0].endswith("first"):
                open("../.process000", "w").close()
            return [os.path.basename(os.getcwd())]
    """)
    cluster.publish("first")
    assert cluster.decided(1)[0].process == "process000"
    cluster.publish("x" * 70_000)
    outcome = cluster.decided(2)[1]
    assert (outcome.status, outcome.tries, outcome.process) == ("done", 1, "process001")
    assert not cluster.job.disk_is_full


def test_a_script_without_rows_finds_its_only_output_folder_where_azure_ml_shows_it(node: Callable[..., Node]) -> None:
    cluster = node(
        """
        import os
        from azureml_user.parallel_run import EntryScript
        def run(items):
            for folder in (os.environ["AZUREML_BI_OUTPUT_PATH"], EntryScript().output_dir):
                with open(os.path.join(folder, os.path.basename(items[0])), "a") as file:
                    file.write("x")
            return items
        """,
        output_action="summary_only",
        outputs={"thumbnails": {}, "report": {"type": "uri_file"}},
    )
    cluster.publish("a", "b")
    assert {outcome.status for outcome in cluster.decided(2).values()} == {"done"}
    thumbnails = cluster.job.folder.outputs / "thumbnails"
    assert {path.name: path.read_text() for path in thumbnails.iterdir()} == {"a": "xx", "b": "xx"}
