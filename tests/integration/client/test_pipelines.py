"""Pipelines through the Python client and the command line, on a cluster of real processes."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from parallelrun import Client, Cluster, JobFailed, run
from parallelrun.cli import main

pytestmark = [
    pytest.mark.integration,
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="agents need Linux"),
]

PIPELINE = """\
type: pipeline
display_name: nightly
inputs:
  words: {type: uri_folder, path: ./words}
  suffix: "!"
outputs:
  shouts: {type: uri_file}
jobs:
  prepare:
    type: command
    code: ./prepare
    command: python prepare.py ${{inputs.words}} ${{outputs.clean}}
    environment: azureml:node@latest
    inputs: {words: "${{parent.inputs.words}}"}
    outputs: {clean: {type: uri_folder}}
  shout:
    type: parallel
    inputs: {words: "${{parent.jobs.prepare.outputs.clean}}", suffix: "${{parent.inputs.suffix}}"}
    outputs: {shouts: "${{parent.outputs.shouts}}"}
    input_data: ${{inputs.words}}
    mini_batch_size: "1"
    mini_batch_error_threshold: 0
    retry_settings: {max_retries: 0}
    task:
      type: run_function
      code: ./shout
      entry_script: shout.py
      environment: azureml:node@latest
      program_arguments: --suffix ${{inputs.suffix}}
      append_row_to: ${{outputs.shouts}}
  count:
    type: command
    command: wc -l < ${{inputs.shouts}} > ${{outputs.total}}/lines.txt && cat ${{outputs.total}}/lines.txt
    environment: azureml:node@latest
    inputs: {shouts: "${{parent.jobs.shout.outputs.shouts}}"}
    outputs: {total: {type: uri_folder}}
"""
PREPARE = """
import shutil, sys
print("preparing")
shutil.copytree(sys.argv[1], sys.argv[2], dirs_exist_ok=True)
"""
SHOUT = """
import argparse
from pathlib import Path
parser = argparse.ArgumentParser()
parser.add_argument("--suffix")
suffix = parser.parse_known_args()[0].suffix
def run(mini_batch):
    if "bad" in suffix:
        raise ValueError("I won't")
    return [Path(path).read_text().strip().upper() + suffix for path in mini_batch]
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The file of a pipeline, with its code and its data."""
    for folder, name, text in (("prepare", "prepare.py", PREPARE), ("shout", "shout.py", SHOUT)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / name).write_text(text)
    (tmp_path / "words").mkdir()
    for word in ("one", "two", "three"):
        (tmp_path / "words" / f"{word}.txt").write_text(word)
    (tmp_path / "pipeline.yml").write_text(PIPELINE)
    return tmp_path / "pipeline.yml"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("cluster") / "home", processes=2) as cluster:
        yield cluster


@pytest.fixture
def client(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    monkeypatch.setenv("PARALLELRUN_URL", cluster.url)
    monkeypatch.setenv("PARALLELRUN_TOKEN", cluster.token)
    with cluster.client() as client:
        yield client


def test_a_pipeline_is_sent_with_all_its_code_and_its_outputs_come_back(
    client: Client, file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    created = client.jobs.create(file)
    assert (created.type, [step.name for step in created.steps]) == ("pipeline", ["prepare", "shout", "count"])
    ended = client.jobs.wait(created.id, timeout_s=90)

    assert ended.state == "completed"
    steps = client.jobs.steps(created.id)
    assert {name: step.state for name, step in steps.items()} == dict.fromkeys(steps, "completed")
    assert {job.id for job in client.jobs.list(parent=created.id)} == {step.job for step in steps.values()}
    assert created.id in {job.id for job in client.jobs.list()}
    shout = client.jobs.get(steps["shout"].job or "")
    assert shout.parent is not None
    assert (shout.type, shout.parent.job, shout.parent.step) == ("parallel", created.id, "shout")

    fetched = sorted(client.outputs.download_all(created.id, tmp_path / "fetched"))
    assert [str(path.relative_to(tmp_path / "fetched")) for path in fetched] == [
        "count/total/lines.txt",
        "shouts/shouts",
    ]
    assert sorted(fetched[1].read_text().split()) == ["ONE!", "THREE!", "TWO!"]

    assert main(["job", "show", created.id]) == 0
    shown = capsys.readouterr().out
    assert re.search(r"shout: completed in .*: 3/3 mini-batches, 3 rows \(job_", shown)
    assert main(["job", "logs", created.id, "--step", "prepare", "stdout"]) == 0
    assert capsys.readouterr().out == "preparing\n"
    assert main(["job", "logs", created.id, "--step", "nothing"]) == 1
    assert "it has: prepare, shout, count" in capsys.readouterr().err
    assert main(["job", "list", "--parent", created.id, "-o", "name"]) == 0
    assert set(capsys.readouterr().out.split()) == {step.job for step in steps.values()}


def test_a_failed_step_is_named_with_its_cause_and_the_pipeline_can_go_on(
    client: Client, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["job", "create", "-f", str(file), "--set", "inputs.suffix=bad", "--stream"]) == 3
    said = capsys.readouterr()
    job = said.out.strip()
    assert "shout: failed" in said.err
    assert "ValueError: I won't" in said.err
    assert "count: skipped: it needs the step 'shout', which has failed" in said.err
    assert f"parallelrun job logs {client.jobs.get(job).step('shout').job}" in said.err
    with pytest.raises(JobFailed):
        client.jobs.wait(job, timeout_s=1)

    prepared = client.jobs.get(job).step("prepare").job
    resumed = client.jobs.retry(job)
    assert resumed.state != "failed"
    ended = client.jobs.wait(job, timeout_s=60, raise_on_failure=False)
    assert (ended.state, ended.step("prepare").job) == ("failed", prepared)


def test_a_pipeline_can_be_canceled_with_its_steps(client: Client, file: Path) -> None:
    text = PIPELINE.replace("python prepare.py ${{inputs.words}} ${{outputs.clean}}", "sleep 100")
    file.write_text(text)
    created = client.jobs.create(file)
    for job in client.jobs.follow(created.id):
        if job.step("prepare").state == "running":
            break
    client.jobs.cancel(created.id)
    ended = client.jobs.wait(created.id, timeout_s=60, raise_on_failure=False)
    assert (ended.state, ended.step("prepare").state) == ("canceled", "canceled")
    assert client.jobs.get(ended.step("prepare").job or "").state == "canceled"


def test_problems_of_steps_are_told_with_file_and_line(
    client: Client, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (file.parent / "shout" / "shout.py").write_text("def run(mini_batch:\n")
    assert main(["job", "create", "-f", str(file)]) == 2
    line = next(n for n, text in enumerate(PIPELINE.splitlines(), 1) if "entry_script" in text)
    assert f"{file}:{line}: /jobs/shout/task/entry_script: shout.py: " in capsys.readouterr().err


def test_a_pipeline_runs_here_with_one_command(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = run(file, output=tmp_path / "out", progress=False)

    assert {name: str(path.relative_to(tmp_path / "out")) for name, path in result.outputs.items()} == {
        "shouts": "shouts/shouts", "count": "count"
    }  # fmt: skip
    assert (tmp_path / "out" / "count" / "total" / "lines.txt").read_text().strip() == "3"
    assert (tmp_path / "out" / "logs" / "prepare" / "user").is_dir()
    assert not (tmp_path / "out" / ".parallelrun").exists()

    (file.parent / "words").rename(file.parent / "elsewhere")
    assert main(["run", str(file), "--output", str(tmp_path / "out2")]) == 2
    assert f"{file}:4: /inputs/words/path: there is no" in capsys.readouterr().err
    assert not (tmp_path / "out2").exists()


def test_another_run_reuses_what_is_equal_and_runs_changed_code(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (file.parent / "shout" / "shout.py").write_text(SHOUT.replace('"bad" in', '"!" in'))
    first = tmp_path / "first"
    assert main(["run", str(file), "--output", str(first)]) == 3
    hint = "to run only steps that have not completed, or have another code folder, settings or inputs, into another"
    assert f"{hint} folder, add --resume-from {first}" in capsys.readouterr().err
    assert main(["run", str(file), "--output", str(first)]) == 1
    assert "holds 1 step that an earlier run has finished" in capsys.readouterr().err

    (file.parent / "shout" / "shout.py").write_text(SHOUT)
    second = tmp_path / "second"
    assert main(["run", str(file), "--output", str(second), "--resume-from", str(first)]) == 0
    said = capsys.readouterr().err
    assert "prepare: completed: reuses the outputs of job_" in said
    assert "completed in" in said
    assert (second / "count" / "total" / "lines.txt").read_text().strip() == "3"
