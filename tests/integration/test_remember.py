"""What was paid for is not paid for twice, and a worker that is broken is replaced."""

from __future__ import annotations

import textwrap
from collections import Counter
from pathlib import Path

import pytest

from parallelrun_api.submission.forgetting import forget
from parallelrun_api.views.remembered import remembered
from parallelrun_core.folder.decisions import read_decisions
from parallelrun_core.wire.states import JobState
from tests.cluster import Cluster

pytestmark = pytest.mark.integration

PAYS = textwrap.dedent("""
    import os
    from parallelrun.script import recall, remember

    def call(name):
        with open(os.path.join(os.environ["FOLDER"], "calls"), "a") as file:
            file.write(name + "\\n")
        return name.upper()

    def run(mini_batch):
        rows = []
        for path in mini_batch:
            name = os.path.basename(path)
            answer = recall(name)
            if answer is None:
                answer = call(name)
                remember(name, answer)
            rows.append(answer)
            dead = os.path.join(os.environ["FOLDER"], "dead-" + name)
            if not os.path.exists(dead) and os.environ["KILLS"] in name:
                open(dead, "w").close()
                os._exit(9)
        if os.environ["FAILS"]:
            raise ValueError("after all of it was paid for")
        return rows
""")
BREAKS = textwrap.dedent("""
    import os
    from parallelrun.script import WorkerBroken
    def run(mini_batch):
        try:
            open(os.path.join(os.environ["FOLDER"], "broken"), "x").close()
        except FileExistsError:
            return [os.path.basename(path) for path in mini_batch]
        raise WorkerBroken("the engine is dead")
""")


def places(cluster: Cluster, *, kills: str = "none", fails: bool = False) -> dict[str, str]:
    folder = cluster.home / "calls"
    folder.mkdir(exist_ok=True)
    return {"FOLDER": str(folder), "KILLS": kills, "FAILS": "yes" if fails else ""}


def calls(cluster: Cluster) -> Counter[str]:
    return Counter((cluster.home / "calls" / "calls").read_text().split())


def names(count: int) -> list[str]:
    return [f"file-{number:07d}.txt" for number in range(count)]


def test_remembered_answers_are_not_paid_for_again_by_later_tries_on_any_node() -> None:
    with Cluster(nodes=2, slots=2) as cluster:
        job = cluster.submit(
            PAYS, inputs=cluster.files(60), mini_batch_size=5,
            environment_variables=places(cluster, kills="3.txt"),
        )  # fmt: skip
        result = cluster.result(job)
        assert result.state is JobState.COMPLETED
        assert cluster.output(result) == [name.upper() for name in names(60)]
        assert calls(cluster) == dict.fromkeys(names(60), 1)


def test_remembered_answers_are_there_for_a_job_that_resumes() -> None:
    with Cluster(nodes=1, slots=2) as cluster:
        files, paid = cluster.files(20), places(cluster, fails=True)
        failed = cluster.submit(
            PAYS, inputs=files, mini_batch_size=5, run_max_try=1, error_threshold=0, environment_variables=paid
        )
        assert cluster.result(failed).state is JobState.FAILED
        first = calls(cluster)
        again = cluster.submit(
            PAYS, inputs=files, mini_batch_size=5, resume_from=failed, environment_variables=places(cluster)
        )
        assert cluster.output(cluster.result(again)) == [name.upper() for name in names(20)]
        assert calls(cluster) == dict.fromkeys(names(20), 1), f"of which {len(first)} were made by the first job"


def test_remembered_answer_that_was_deleted_is_asked_for_again_and_no_other() -> None:
    with Cluster(nodes=1, slots=2) as cluster:
        files, paid = cluster.files(20), places(cluster, fails=True)
        failed = cluster.submit(
            PAYS, inputs=files, mini_batch_size=5, run_max_try=1, error_threshold=-1, environment_variables=paid
        )
        cluster.result(failed)
        cluster.until(lambda: not cluster.registry.is_active(failed), "the job is cleared up", 60)
        assert calls(cluster) == dict.fromkeys(names(20), 1)
        forgotten = forget(cluster.folder(failed), cluster.registry, names(20)[7])
        assert forgotten.count == 1
        again = cluster.submit(
            PAYS, inputs=files, mini_batch_size=5, resume_from=failed, environment_variables=places(cluster)
        )
        assert cluster.output(cluster.result(again)) == [name.upper() for name in names(20)]
        assert calls(cluster) == {name: 2 if name == names(20)[7] else 1 for name in names(20)}
        forget(cluster.folder(failed), cluster.registry, None)
        taken_over = remembered(cluster.folder(again), text="", limit=100, token="")
        assert sorted(each.key for each in taken_over.items) == names(20), "a job that has taken over keeps its own"


def test_broken_worker_that_its_script_gives_up_is_replaced_uncharged() -> None:
    with Cluster(nodes=1, slots=1) as cluster:
        job = cluster.submit(
            BREAKS, inputs=cluster.files(6), mini_batch_size=1, run_max_try=1,
            environment_variables=places(cluster),
        )  # fmt: skip
        result = cluster.result(job)
        assert cluster.output(result) == names(6)
        assert {each.tries for each in read_decisions(cluster.folder(job).path)} == {1}
        processes = {path.name for path in Path(cluster.folder(job).logs).glob("sys/node/*/process[0-9][0-9][0-9].txt")}
        assert len(processes) == 2, processes
