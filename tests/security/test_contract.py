"""The API answers as its OpenAPI document says, whatever is asked: schemathesis asks what fits it, and what doesn't."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster import Cluster

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
SEED = 1
MOST_S = 1200
"""On a slow machine that is busy; otherwise the three take two minutes."""
PHASES = {"coverage": (), "fuzzing": ("--max-time", "15"), "stateful": ("--max-time", "10")}
"""Each value of each field once; any combinations; one answer's ids in the next request. The last two never end."""
LONGEST_S = "20"
"""For one answer: a retry waits up to 15 s for the workers of a job that has just ended, then says 503."""
TOKEN = "token-of-the-contract"
FAILS_AT_TWO = "def run(mini_batch):\n    assert '2.txt' not in mini_batch[0]\n    return ['row']\n"
WAITS = "import time\ndef run(mini_batch):\n    time.sleep(600)\n"


def jobs_in_all_states(cluster: Cluster) -> tuple[list[str], list[str]]:
    """Ids of jobs that have ended, and of others: completed, with failures, failed, a pipeline, running, queued."""
    inputs = cluster.files(4)
    job = {"inputs": inputs, "mini_batch_size": 1, "run_max_try": 1}
    ended = [
        cluster.submit("def run(mini_batch):\n    return ['row']\n", inputs=inputs),
        cluster.submit(FAILS_AT_TWO, **job),  # type: ignore[arg-type]
        cluster.submit(FAILS_AT_TWO, error_threshold=0, **job),  # type: ignore[arg-type]
        cluster.submit_pipeline(FAILS_AT_TWO, {"only": {"job": {"inputs": {"data": {"path": str(inputs)}}}}}),
    ]
    for job_id in ended:
        cluster.result(job_id)
    open_ones = [cluster.submit(WAITS, run_invocation_timeout=600, **job) for _ in range(2)]  # type: ignore[arg-type]
    return ended, open_ones


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[Cluster, dict[str, str]]]:
    """A cluster whose API wants a token, and what schemathesis has to know of it."""
    with Cluster(api=True, token=TOKEN) as cluster:
        ended, open_ones = jobs_in_all_states(cluster)
        yield cluster, {"CONTRACT_ENDED": " ".join(ended), "CONTRACT_OPEN": " ".join(open_ones)}


@pytest.mark.integration
@pytest.mark.slow
@pytest.mark.timeout(2 * MOST_S)
@pytest.mark.parametrize("phase", PHASES)
def test_whatever_is_asked_the_answer_is_in_the_contract(served: tuple[Cluster, dict[str, str]], phase: str) -> None:
    check_phase(*served, phase)


def check_phase(cluster: Cluster, jobs: dict[str, str], phase: str, only: str = "") -> None:
    """Ask all that belongs to a phase, or what of it is asked of one path."""
    path = ["--include-path", only] if only else []
    done = ask(cluster, jobs, "--phases", phase, *PHASES[phase], *path)
    logged = (cluster.log(name)[-6000:] for name in ("master", *cluster.nodes))
    assert done.returncode == 0, "".join([done.stdout, done.stderr, *logged])


def ask(cluster: Cluster, jobs: dict[str, str], *options: str) -> subprocess.CompletedProcess[str]:
    """Let schemathesis ask, with data that fit and data that don't, and with all of its checks."""
    return subprocess.run(
        [
            sys.executable, "-m", "schemathesis.cli", "--config-file", str(HERE / "contract" / "schemathesis.toml"),
            "run", str(ROOT / "docs" / "openapi.json"), "--url", cluster.api_url, "--seed", str(SEED),
            "--checks", "all", "--mode", "all", "--request-timeout", "30", "--max-response-time", LONGEST_S,
            "--no-shrink", "--header", f"Authorization: Bearer {TOKEN}", *options,
        ],
        env={**os.environ, **jobs, "SCHEMATHESIS_HOOKS": "tests.security.contract.hooks", "NO_COLOR": "1"},
        cwd=ROOT, capture_output=True, text=True, timeout=MOST_S, check=False,
    )  # fmt: skip
