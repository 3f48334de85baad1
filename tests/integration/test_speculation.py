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
