"""A new job goes on with the work of one that has ended: what is done is not run again, and each row comes once."""

from __future__ import annotations

import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator

import pytest

from parallelrun import Client, Conflict, InvalidRequest
from parallelrun_core.figures import counted
from parallelrun_core.folder.decisions import read_decisions
from parallelrun_core.folder.manifest import read_manifest
from parallelrun_core.wire.states import JobState
from tests.cluster import Cluster

pytestmark = pytest.mark.integration

FILES = 60
BROKEN = textwrap.dedent("""
    import os, time
    def run(mini_batch):
        names = [os.path.basename(path) for path in mini_batch]
        if int(names[0][5:12]) >= 30:
            raise ValueError("not mended yet")
        return ["first " + name for name in names]
""")
MENDED = textwrap.dedent("""
    import os
    def run(mini_batch):
        names = [os.path.basename(path) for path in mini_batch]
        with open(os.environ["RUNS"], "a") as file:
            file.write("".join(name + "\\n" for name in names))
        return ["then " + name for name in names]
""")
BROKEN_FOR_SOME = textwrap.dedent("""
    import os
    def run(mini_batch):
        names = [os.path.basename(path) for path in mini_batch]
        if "file-0000031.txt" in names:
            raise ValueError("not mended yet")
        return ["first " + name for name in names]
""")
WAITING = textwrap.dedent("""
    import os, time
    def run(mini_batch):
        while int(os.path.basename(mini_batch[0])[5:12]) >= 30:
            time.sleep(0.05)
        return ["first " + os.path.basename(path) for path in mini_batch]
""")
AZURE = """
type: pipeline
compute: azureml:cpu
jobs:
  score:
    type: parallel
    mini_batch_size: "2"
    inputs: {{data: {{type: uri_folder, path: {data}, litter_files: skip}}}}
    input_data: ${{{{inputs.data}}}}
    outputs: {{rows: {{type: uri_file}}}}
    task:
      type: run_function
      code: {code}
      entry_script: entry.py
      program_arguments: --resume_from {job} --verbose
      environment: azureml:node@latest
      append_row_to: ${{{{outputs.rows}}}}
    environment_variables: {{RUNS: {runs}}}
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(api=True) as running:
        yield running


@pytest.fixture
def client(cluster: Cluster) -> Iterator[Client]:
    with Client(cluster.api_url) as made:
        yield made


def spec(cluster: Cluster, script: str, **settings: object) -> dict[str, object]:
    runs = cluster.home / "runs"
    runs.write_text("")
    return {
        "entry_script": "entry.py",
        "code": str(cluster.code(script)),
        "inputs": str(cluster.files(FILES)),
        "mini_batch_size": 2,
        "environment_variables": {"RUNS": str(runs)},
        **settings,
    }


def half_done(cluster: Cluster, client: Client, **settings: object) -> str:
    """A job of which the second half has failed."""
    job = client.jobs.create(spec(cluster, BROKEN, run_max_try=1, allowed_failed_percent=20, **settings))
    assert client.jobs.wait(job.id, raise_on_failure=False).state == "failed"
    return job.id


def check(cluster: Cluster, job: str, done: set[int]) -> None:
    """Each row is there once and in order, and run() has seen nothing that was done already."""
    first = {f"file-{2 * number + odd:07d}.txt" for number in done for odd in (0, 1)}
    names = [f"file-{number:07d}.txt" for number in range(FILES)]
    rows = cluster.output(cluster.result(job))
    assert rows == [f"{'first' if name in first else 'then'} {name}" for name in names]
    assert sorted((cluster.home / "runs").read_text().split()) == [name for name in names if name not in first]


def done_in(cluster: Cluster, job: str) -> set[int]:
    return {each.mini_batch for each in read_decisions(cluster.folder(job).path) if each.status == "done"}


def test_mended_code_runs_only_what_the_earlier_job_has_not_done_and_outlives_it(
    cluster: Cluster, client: Client
) -> None:
    earlier = half_done(cluster, client)
    done = done_in(cluster, earlier)
    job = client.jobs.create(spec(cluster, MENDED, resume_from=earlier))
    cluster.until(lambda: earlier not in cluster.registry.active_jobs(), "the earlier job is retired")
    folder = cluster.folder(earlier).path

    def is_removed() -> bool:
        shutil.rmtree(folder, ignore_errors=True)
        return not folder.exists()

    cluster.until(is_removed, "its folder is gone, into which busy nodes may still have written their last reports")
    assert job.progress.resumed == len(done)
    ended = client.jobs.wait(job.id)
    progress = ended.progress
    assert (progress.done, progress.resumed, progress.failed, progress.rows) == (30, len(done), 0, FILES)
    check(cluster, job.id, done)
    logs = cluster.folder(job.id).logs
    assert f"Taken over: {len(done)} finished mini-batches" in (logs / "job_result.txt").read_text()
    report = (logs / "sys" / "job_report" / "processed_mini-batches.csv").read_text()
    assert report.count("RUN_DONE") == FILES // 2 - len(done), "what was taken over is no try"


def test_mended_code_runs_what_has_an_item_that_failed(cluster: Cluster, client: Client) -> None:
    """The other item of its mini-batch has its row in the earlier job."""
    settings = spec(cluster, BROKEN_FOR_SOME, run_max_try=1, error_threshold=0)
    earlier = client.jobs.wait(client.jobs.create(settings).id, raise_on_failure=False)
    assert (earlier.state, earlier.progress.items_failed) == ("failed", 1)
    done = done_in(cluster, earlier.id) - {15}
    job = client.jobs.create(spec(cluster, MENDED, resume_from=earlier.id, error_threshold=0))
    assert client.jobs.wait(job.id).progress.resumed == len(done)
    check(cluster, job.id, done)


def test_what_has_changed_since_the_list_was_made_is_said(cluster: Cluster, client: Client) -> None:
    """By a takeover and by a retry, which run by the list of the earlier job."""
    folder = shutil.copytree(cluster.files(FILES), cluster.home / "changing")
    earlier = half_done(cluster, client, inputs=str(folder))
    kept = client.jobs.create(spec(cluster, MENDED, inputs=str(folder), resume_from=earlier))
    assert not [each for each in client.jobs.wait(kept.id).warnings if "not as when" in each]
    changed, gone = sorted(folder.iterdir())[:2]
    changed.write_text("")
    gone.unlink()
    (folder / "new.txt").touch()
    words = f"3 files are not as when the inputs were listed (new.txt is new, {gone.name} is gone, {changed.name} was"
    job = client.jobs.create(spec(cluster, MENDED, inputs=str(folder), resume_from=earlier))
    ended = client.jobs.wait(job.id)
    assert any(each.startswith(words) for each in ended.warnings), ended.warnings
    client.jobs.retry(earlier)
    again = client.jobs.wait(earlier, raise_on_failure=False)
    assert any(each.startswith(words) for each in again.warnings), again.warnings


def test_a_resumed_job_says_which_files_have_come_since(cluster: Cluster, client: Client) -> None:
    folder = shutil.copytree(cluster.files(FILES), cluster.home / "growing")
    job = client.jobs.create(spec(cluster, WAITING, inputs=str(folder))).id
    cluster.until(lambda: client.jobs.get(job).progress.done >= 10, "some mini-batches are done")
    client.jobs.cancel(job)
    client.jobs.wait(job, raise_on_failure=False)
    (folder / "new.txt").touch()
    client.jobs.resume(job, accept_changed_inputs=True)
    words = "1 file is not as when the inputs were listed (new.txt is new): new files are not in this run"
    logs = cluster.folder(job).logs
    cluster.until(
        lambda: any(words in path.read_text() for path in logs.glob("job_progress_overview.*.txt")), "the job says so"
    )
    client.jobs.cancel(job)
    ended = client.jobs.wait(job, raise_on_failure=False)
    assert any(each.startswith(words) for each in ended.warnings), ended.warnings


def test_a_job_file_of_azure_resumes_a_job_that_was_canceled(cluster: Cluster, client: Client) -> None:
    earlier = client.jobs.create(spec(cluster, WAITING))
    cluster.until(lambda: client.jobs.get(earlier.id).progress.done >= 10, "some mini-batches are done")
    with pytest.raises(Conflict, match="has not ended"):
        client.jobs.create(spec(cluster, MENDED, resume_from=earlier.id))
    client.jobs.cancel(earlier.id)
    client.jobs.wait(earlier.id, raise_on_failure=False)
    done = done_in(cluster, earlier.id)
    assert len(done) >= 10
    settings = spec(cluster, MENDED)
    job_file = cluster.home / "pipeline.yml"
    names = {"data": settings["inputs"], "code": settings["code"], "runs": cluster.home / "runs"}
    job_file.write_text(AZURE.format(job=earlier.id, **names))
    command = [sys.executable, "-m", "parallelrun", "job", "create", "-f", str(job_file), "--stream"]
    ran = subprocess.run([*command, "--url", cluster.api_url], capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 0, ran.stderr
    assert f"took over {counted(len(done), 'mini-batch')} from {earlier.id}" in ran.stderr
    check(cluster, ran.stdout.split()[0], done)


def test_a_plan_that_differs_is_refused_and_leaves_nothing(cluster: Cluster, client: Client) -> None:
    earlier = half_done(cluster, client)
    before = sorted((cluster.root / "jobs").iterdir())
    with pytest.raises(InvalidRequest, match=r"mini_batch_size: it is 3 here but 2 in job"):
        client.jobs.create(spec(cluster, MENDED, resume_from=earlier, mini_batch_size=3))
    with pytest.raises(InvalidRequest, match="there is no job 'job_nothing' here"):
        client.jobs.create(spec(cluster, MENDED, resume_from="job_nothing"))
    assert sorted((cluster.root / "jobs").iterdir()) == before


def test_a_plan_that_was_not_complete_is_completed(cluster: Cluster, client: Client) -> None:
    """As after the death of a leader that was listing."""
    earlier = half_done(cluster, client)
    folder = cluster.folder(earlier).path
    listed = [entry.offset for entry in read_manifest(folder)][20]
    (manifest,) = folder.glob("manifest.*")
    with manifest.open("r+b") as file:
        file.truncate(listed)
    done = done_in(cluster, earlier)
    job = client.jobs.create(spec(cluster, MENDED, resume_from=earlier))
    assert client.jobs.wait(job.id).state == JobState.COMPLETED
    check(cluster, job.id, done)


def test_a_job_that_has_done_all_is_put_together_again(cluster: Cluster, client: Client) -> None:
    """With another output: nothing is left to run."""
    whole = client.jobs.create(spec(cluster, MENDED))
    client.jobs.wait(whole.id)
    again = client.jobs.create(spec(cluster, BROKEN, resume_from=whole.id, append_row_file_name="again.txt"))
    assert client.jobs.wait(again.id).progress.resumed == 30
    result = cluster.result(again.id)
    assert result.output.endswith("again.txt")
    assert len(cluster.output(result)) == FILES
