"""What scripts report as cost is added up exactly, and a job whose budget is used up hands out nothing more."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from parallelrun_api.submission.reopening import Reopenings
from parallelrun_core.adviser.advising import advise
from parallelrun_core.adviser.reading.evidence import evidence_of
from parallelrun_core.errors import Conflict
from parallelrun_core.store.keys import JobKeys
from parallelrun_core.wire.costs import usd_text
from parallelrun_core.wire.states import JobState
from tests.cluster import Cluster

pytestmark = pytest.mark.integration

PAYS = textwrap.dedent("""
    import os, signal, threading, time
    from parallelrun.script import report_cost

    folder = os.environ["FOLDER"]
    paying = threading.Lock()  # who is killed has said what it has paid

    def first(what, name):
        try:
            open(os.path.join(folder, what + "-" + name), "x").close()
            return True
        except FileExistsError:
            return False

    def pay(name):
        with paying, open(os.path.join(folder, "calls"), "a") as file:
            report_cost(0.0000001)
            report_cost(usd=0.01)
            file.write(name + "\\n")
            file.flush()

    def run(mini_batch):
        rows = []
        for path in mini_batch:
            name = os.path.basename(path)
            pay(name)
            if os.environ["TROUBLE"]:
                if "3.txt" in name and first("killed", name):
                    with paying:
                        os.kill(os.getpid(), signal.SIGKILL)
                if "5.txt" in name and first("failed", name):
                    raise ValueError("it was paid for")
                if "7.txt" in name and first("hung", name):
                    time.sleep(600)
            rows.append(name)
        return rows
""")
WAITS = PAYS + textwrap.dedent("""
    run_one = run

    def run(mini_batch):
        rows = run_one(mini_batch)
        while len(open(os.path.join(folder, "calls")).readlines()) >= 8 and not os.path.exists(os.environ["GO"]):
            time.sleep(0.01)
        return rows
""")


def variables(cluster: Cluster, *, trouble: bool = False) -> dict[str, str]:
    folder = cluster.home / "calls"
    folder.mkdir(exist_ok=True)
    return {"FOLDER": str(folder), "TROUBLE": "yes" if trouble else "", "GO": str(folder / "go")}


def calls(cluster: Cluster) -> list[str]:
    file = cluster.home / "calls" / "calls"
    return file.read_text().split() if file.exists() else []


def names(count: int) -> list[str]:
    return [f"file-{number:07d}.txt" for number in range(count)]


def usd(call_count: int) -> float:
    return call_count * 10_000_100 / 10**9


def kill_leaders(cluster: Cluster) -> None:
    for leader in cluster.leaders():
        with suppress(psutil.NoSuchProcess):  # it has just ended
            leader.kill()


@pytest.mark.parametrize("in_flight", [1, 4])
def test_budget_counts_every_call_of_tries_that_fail_hang_or_die_once(in_flight: int) -> None:
    with Cluster(nodes=2, slots=2, leader_s=1) as cluster:
        waiting = {"mini_batches_in_flight": in_flight, "in_flight": "threads"} if in_flight > 1 else {}
        job = cluster.submit(
            PAYS, inputs=cluster.files(80), mini_batch_size=1, run_invocation_timeout=2, run_max_try=8,
            environment_variables=variables(cluster, trouble=True), budget={"usd": 100}, **waiting,
        )  # fmt: skip
        cluster.until(lambda: len(calls(cluster)) > 20, "some are paid for")
        kill_leaders(cluster)
        result = cluster.result(job, timeout_s=180)
        assert result.state is JobState.COMPLETED, result.failure
        assert cluster.output(result) == names(80)
        assert len(calls(cluster)) >= 80 + 3 * 8
        assert result.progress.spent_usd == usd(len(calls(cluster)))
        assert result.progress.budget_usd == 100
        report = (cluster.folder(job).logs / "job_result.txt").read_text()
        assert f"Cost: ${usd(len(calls(cluster))):.2f} of a budget of $100.00 spent." in report


def test_budget_that_is_used_up_hands_out_nothing_more_and_can_be_raised() -> None:
    with Cluster(nodes=2, slots=2, leader_s=1) as cluster:
        job = end_used_up(cluster)
        assert [finding.id for finding in advise(evidence_of(cluster.folder(job))).findings][:1] == ["budget"]
        reopenings = Reopenings(cluster.root, cluster.redis)
        for too_small in (None, 0.05):
            with pytest.raises(Conflict, match=r"has spent .* would end again at once"):
                reopenings.resume(job, accept_changed_inputs=False, budget_usd=too_small)
        reopenings.resume(job, accept_changed_inputs=False, budget_usd=50.0)
        cluster.until(lambda: cluster.result(job, timeout_s=120).state is JobState.COMPLETED, "it completes", 120)
        result = cluster.result(job)
        assert cluster.output(result) == names(60)
        assert sorted(calls(cluster)) == names(60), "nothing was paid for twice"
        assert (result.progress.spent_usd, result.progress.budget_usd) == (usd(60), 50.0)
        evidence = evidence_of(cluster.folder(job))
        assert (evidence.spent_usd, evidence.budget_usd) == (usd(60), 50.0)


def end_used_up(cluster: Cluster) -> str:
    """Return a job that has ended because its budget is used up, with what ran then."""
    job = cluster.submit(
        WAITS, inputs=cluster.files(60), mini_batch_size=1, environment_variables=variables(cluster),
        budget={"usd": 0.08}, run_invocation_timeout=300,
    )  # fmt: skip
    keys, redis = JobKeys(job), cluster.redis
    cluster.until(lambda: redis.hexists(keys.job, "used_up"), "the leader closes the job", 60)
    only_running: Callable[[], bool] = lambda: int(redis.hlen(keys.leases)) <= 4  # noqa: E731
    cluster.until(only_running, "nodes give back what they have not begun")
    at_work = int(redis.hlen(keys.leases))
    kill_leaders(cluster)
    (cluster.home / "calls" / "go").touch()
    result = cluster.result(job, timeout_s=120)
    assert result.state is JobState.FAILED
    assert result.failure is not None
    assert result.failure.code == "BUDGET_USED_UP"
    count = len(calls(cluster))
    assert result.failure.summary == (
        f"The budget of $0.08 is used up: {usd_text(usd(count))} were spent, "
        f"and {count} of 60 mini-batches are decided."
    )
    assert 8 <= count == result.progress.done <= 8 + at_work, "what ran was finished, and nothing more begun"
    assert result.progress.spent_usd == usd(count)
    return job


def test_budget_of_a_job_that_reports_no_cost_is_never_used_up(tmp_path: Path) -> None:
    with Cluster(nodes=1, slots=1) as cluster:
        job = cluster.submit(
            "def run(mini_batch):\n    return mini_batch\n", inputs=cluster.files(4), budget={"usd": 0.01}
        )
        result = cluster.result(job)
        assert (result.state, result.progress.spent_usd) == (JobState.COMPLETED, 0)
