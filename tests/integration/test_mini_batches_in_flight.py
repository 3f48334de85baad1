"""Several mini-batches in flight in one worker: each with its own rows, time and tries, in any order of answers.

The scripts wait for each other, not for a clock: where fewer run at once than are meant to, the job would never end.
"""

from __future__ import annotations

import textwrap
from collections import Counter

import pytest

from parallelrun_core.folder.decisions import read_decisions
from parallelrun_core.wire.states import JobState
from tests.cluster import Cluster

pytestmark = pytest.mark.integration

AWAITED = textwrap.dedent("""
    import asyncio, os
    async def init():
        global all_there, count, loop
        loop, count, all_there = asyncio.get_running_loop(), 0, asyncio.Event()
    async def run(mini_batch, context):
        global count
        assert asyncio.get_running_loop() is loop
        count += 1
        if count == 16:
            all_there.set()
        await all_there.wait()
        await asyncio.sleep(0.002 * (16 - context.minibatch_index % 16))
        return [os.path.basename(path) for path in mini_batch]
    async def shutdown():
        assert asyncio.get_running_loop() is loop
        print("shut down")
""")
IN_THREADS = textwrap.dedent("""
    import os, threading
    all_there = threading.Barrier(16)
    def run(mini_batch):
        all_there.wait()
        return [os.path.basename(path) for path in mini_batch]
""")
STREAMING = textwrap.dedent("""
    import os
    held = {}
    def enqueue(mini_batch, mini_batch_context):
        held[mini_batch_context.minibatch_index] = (mini_batch, mini_batch_context)
    def check_all_tasks_processed():
        return not held
    def get_processing_batch_number():
        return len(held)
    def get_finished_batch_result():
        if len(held) < 8:
            return {}
        results = {}
        for key, (paths, context) in list(held.items()):
            error = ValueError("the ninth") if key == 9 else None
            names = [os.path.basename(path) for path in paths]
            results[key] = {"ret": names, "mini_batch_context": context, "exception": error}
        held.clear()
        return results
""")
ONE_OF_EACH = textwrap.dedent("""
    import asyncio, os, sys
    begun = 0
    all_there = asyncio.Event()
    async def run(mini_batch):
        global begun
        begun += 1
        if begun == 12:
            all_there.set()
        name = os.path.basename(mini_batch[0])
        if os.environ["EVIL"] == "dies" and name == "file-0000003.txt":
            os._exit(7)
        if os.environ["EVIL"] != "dies":
            await all_there.wait()
        if name == "file-0000003.txt":
            if os.environ["EVIL"] == "exits":
                sys.exit("enough")
            await asyncio.Event().wait()
        return [name]
""")
RAISES_ONCE = textwrap.dedent("""
    import asyncio, os
    tried, twice = set(), asyncio.Event()
    async def run(mini_batch):
        name = os.path.basename(mini_batch[0])
        if name in ("file-0000002.txt", "file-0000005.txt"):
            if name not in tried:
                tried.add(name)
                raise ValueError("the first try")
            tried.add("again " + name)
            if len(tried) == 4:
                twice.set()
        await twice.wait()
        return [name]
""")


def names(count: int) -> list[str]:
    return [f"file-{number:07d}.txt" for number in range(count)]


@pytest.mark.parametrize("source, way", [(AWAITED, "async"), (IN_THREADS, "threads")])
def test_mini_batches_in_flight_have_each_row_once_and_in_order(source: str, way: str) -> None:
    with Cluster(nodes=1, slots=1) as cluster:
        job = cluster.submit(
            source, inputs=cluster.files(64), mini_batch_size=1, mini_batches_in_flight=16, in_flight=way
        )
        result = cluster.result(job)
        assert result.state is JobState.COMPLETED
        assert cluster.output(result) == names(64)


def test_mini_batches_in_flight_of_a_streaming_script_are_what_it_hands_back() -> None:
    with Cluster(nodes=1, slots=1) as cluster:
        job = cluster.submit(
            STREAMING, inputs=cluster.files(32), mini_batch_size=1, mini_batches_in_flight=8, in_flight="streaming",
            run_max_try=1,
        )  # fmt: skip
        result = cluster.result(job)
        assert cluster.output(result) == [name for name in names(32) if name != "file-0000009.txt"]
        [failed] = [each for each in read_decisions(cluster.folder(job).path) if each.failure is not None]
        assert (failed.mini_batch, failed.failure.message) == (9, "ValueError: the ninth")  # type: ignore[union-attr]


@pytest.mark.parametrize("evil, category", [("hangs", "RUN_TIMEOUT"), ("exits", "RUN_EXCEPTION")])
def test_mini_batches_in_flight_beside_one_that_fails_are_not_charged(evil: str, category: str) -> None:
    with Cluster(nodes=1, slots=1) as cluster:
        job = cluster.submit(
            ONE_OF_EACH, inputs=cluster.files(12), mini_batch_size=1, mini_batches_in_flight=12, run_max_try=1,
            run_invocation_timeout=20, environment_variables={"EVIL": evil},
        )  # fmt: skip
        result = cluster.result(job)
        assert cluster.output(result) == [name for name in names(12) if name != "file-0000003.txt"]
        outcomes = {each.mini_batch: each for each in read_decisions(cluster.folder(job).path)}
        assert outcomes[3].failure is not None
        assert outcomes[3].failure.category == category
        assert {each.tries for each in outcomes.values()} == {1}
        assert all(each.process_s < 0 for each in outcomes.values()), "no CPU time is any try's own"


def test_mini_batches_in_flight_that_raise_are_tried_again_beside_others() -> None:
    with Cluster(nodes=1, slots=1) as cluster:
        job = cluster.submit(RAISES_ONCE, inputs=cluster.files(8), mini_batch_size=1, mini_batches_in_flight=8)
        result = cluster.result(job)
        assert cluster.output(result) == names(8)
        tries = {each.mini_batch: each.tries for each in read_decisions(cluster.folder(job).path)}
        assert [number for number, count in tries.items() if count > 1] == [2, 5]


def test_mini_batches_in_flight_run_alone_after_their_worker_has_died() -> None:
    with Cluster(nodes=1, slots=1) as cluster:
        job = cluster.submit(
            ONE_OF_EACH, inputs=cluster.files(12), mini_batch_size=1, mini_batches_in_flight=6, run_max_try=2,
            environment_variables={"EVIL": "dies"},
        )  # fmt: skip
        result = cluster.result(job)
        assert cluster.output(result) == [name for name in names(12) if name != "file-0000003.txt"]
        outcomes = {each.mini_batch: each for each in read_decisions(cluster.folder(job).path)}
        assert Counter(each.status for each in outcomes.values()) == {"done": 11, "failed": 1}
        assert outcomes[3].failure is not None
        assert (outcomes[3].failure.category, outcomes[3].tries) == ("EXITED", 2)
        assert max(each.tries for each in outcomes.values()) <= 2


def test_an_awaited_run_works_one_mini_batch_at_a_time_by_default() -> None:
    source = AWAITED.replace("if count == 16", "if count == 1")
    with Cluster(nodes=1, slots=1) as cluster:
        job = cluster.submit(source, inputs=cluster.files(20), mini_batch_size=1)
        assert cluster.output(cluster.result(job)) == names(20)
