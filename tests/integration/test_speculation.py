"""A straggler at the job's tail gets a second delivery; whichever commits first is the only one."""

from __future__ import annotations

import textwrap
import time

import pytest

from parallelrun_core.wire.states import JobState
from tests.cluster import Cluster

pytestmark = pytest.mark.integration

ONCE_SLOW = textwrap.dedent("""
    import os, time
    def run(mini_batch):
        if mini_batch[0].endswith("0000150.txt"):
            try:
                os.close(os.open(os.environ["SLOW"], os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                return ["second"]
            time.sleep(300)
            return ["first"]
        return [os.path.basename(path) for path in mini_batch]
""")


def test_a_straggler_is_overtaken_by_its_twin() -> None:
    with Cluster(nodes=2, slots=1) as cluster:
        began = time.monotonic()
        job = cluster.submit(
            ONCE_SLOW,
            inputs=cluster.files(200),
            mini_batch_size=1,
            speculative_execution=True,
            run_invocation_timeout=600,
            environment_variables={"SLOW": str(cluster.home / "slow")},
        )
        result = cluster.result(job, timeout_s=100)
        assert result.state is JobState.COMPLETED
        assert time.monotonic() - began < 100
        expected = [f"file-{number:07d}.txt" for number in range(200)]
        expected[150] = "second"
        assert cluster.output(result) == expected
        assert result.progress.retried == 0


ONCE_SLOW_IN_FLIGHT = textwrap.dedent("""
    import asyncio, os
    async def run(mini_batch):
        name = os.path.basename(mini_batch[0])
        if name.endswith("0000150.txt"):
            with open(os.environ["SLOW"], "a") as file:
                file.write(f"{os.getpid()}\\n")
            with open(os.environ["SLOW"]) as file:
                if len(file.readlines()) == 1:
                    await asyncio.sleep(300)
        await asyncio.sleep(0.01)
        return [name]
""")


def test_a_straggler_in_flight_is_overtaken_in_another_worker() -> None:
    with Cluster(nodes=1, slots=2) as cluster:
        slow = cluster.home / "slow"
        job = cluster.submit(
            ONCE_SLOW_IN_FLIGHT, inputs=cluster.files(200), mini_batch_size=1, mini_batches_in_flight=16,
            speculative_execution=True, run_invocation_timeout=600, environment_variables={"SLOW": str(slow)},
        )  # fmt: skip
        result = cluster.result(job, timeout_s=200)
        assert cluster.output(result) == [f"file-{number:07d}.txt" for number in range(200)]
        assert result.progress.retried == 0
        first, second = slow.read_text().split()
        assert first != second, "a worker answers by mini-batch, so it may not have one twice"
