"""What notebooks ask of the steps of a pipeline, and of jobs that have ended; filters of lists."""

import io
import os
import sys
import time
from contextlib import redirect_stdout
from pathlib import Path

import requests
from azure.ai.ml import MLClient, load_job
from azure.core.exceptions import HttpResponseError, ResourceNotFoundError
from azure.identity import DefaultAzureCredential

ml_client = MLClient.from_config(credential=DefaultAzureCredential())


def printed(name):
    """What `stream` prints."""
    lines = io.StringIO()
    with redirect_stdout(lines):
        ml_client.jobs.stream(name)
    print(lines.getvalue(), file=sys.stderr)
    return lines.getvalue()


def of_the_command_line():
    """The ids of the jobs that the command line lists."""
    url = os.environ["AZUREML_DEV_URL_MFE"].removesuffix("/azure")
    answer = requests.get(
        f"{url}/v1/jobs", headers={"Authorization": f"Bearer {os.environ['IDENTITY_HEADER']}"}, timeout=60
    )
    return [each["id"] for each in answer.json()["items"]]


job = load_job("steps.yml", params_override=[{"tags": {"of": ml_client.workspace_name}}])
job = ml_client.jobs.create_or_update(job)
running = printed(job.name)
pipeline = ml_client.jobs.get(job.name)
assert (pipeline.status, pipeline.experiment_name) == ("Completed", "petals")
assert pipeline.settings.default_compute == "cpu-cluster"
assert pipeline.settings.continue_on_step_failure is False

children = {child.properties["StepType"]: child for child in ml_client.jobs.list(parent_job_name=job.name)}
assert set(children) == {"command", "parallel"}, children
for child in children.values():
    shown = ml_client.jobs.get(child.name)
    assert shown.display_name == child.display_name, (shown.display_name, child.display_name)
    assert shown.experiment_name == child.experiment_name == "petals"
    assert child.properties["azureml.pipelinerunid"] == job.name
    assert set(shown.inputs) == {"files", "amount"} if shown.type == "command" else {"files"}, shown.inputs
command = ml_client.jobs.get(children["command"].name)
assert (command.type, command.display_name, command.compute) == ("command", "The count", "cpu-cluster")
assert "CliV2AnonymousEnvironment" in command.environment
assert command.environment[0] != "/"
parallel = ml_client.jobs.get(children["parallel"].name)
assert parallel.jobs["score"].type == "parallel"

# What a job that has ended has printed, as of one that runs.
assert "The pipeline has completed." in running
assert printed(job.name) == running
assert "files: 4 of 3\n" in printed(command.name)
assert "The job has completed." in printed(parallel.name)

ml_client.jobs.download(job.name, all=True, download_path="out-steps")
results = sorted(str(path.parent.relative_to("out-steps")) for path in Path("out-steps").rglob("job_result.txt"))
assert results == ["artifacts", "artifacts/count", "artifacts/score"], results

# A pipeline of one parallel step has a child with a name of its own.
one = ml_client.jobs.create_or_update(load_job("one_step.yml"))
ml_client.jobs.stream(one.name)
(only,) = ml_client.jobs.list(parent_job_name=one.name)
assert only.name != one.name
assert only.display_name == ml_client.jobs.get(only.name).display_name == "score"
assert ml_client.jobs.get(one.name).display_name == "Only one"
for called, output in ((one.name, "result"), (only.name, "scores")):
    ml_client.jobs.download(called, output_name=output, download_path=f"out-{output}")
    assert [path for path in Path(f"out-{output}").rglob("*") if path.is_file()], output

# Filters.
assert [each.name for each in ml_client.jobs.list(tag=f"of={ml_client.workspace_name}")] == [job.name]
assert list(ml_client.jobs.list(tag="of=nothing")) == []
assert len(list(ml_client.jobs.list(parent_job_name=job.name, max_results=1))) in (1, 2)  # early releases don't say it
ml_client.jobs.archive(one.name)
assert one.name not in [each.name for each in ml_client.jobs.list()]
assert one.name in [each.name for each in ml_client.jobs.list(list_view_type="ArchivedOnly")]
assert only.name not in of_the_command_line()
ml_client.jobs.restore(one.name)
assert only.name in of_the_command_line()
assert one.name in [each.name for each in ml_client.jobs.list()]
if hasattr(ml_client.jobs, "update"):
    updated = ml_client.jobs.update(one.name, display_name="Another", description="of it", tags={"color": "green"})
    assert (updated.display_name, updated.description) == ("Another", "of it")
    assert updated.tags["color"] == "green"
if hasattr(ml_client.jobs, "begin_delete"):
    deadline = time.monotonic() + 300
    while True:
        try:
            ml_client.jobs.begin_delete(one.name).result()
            break
        except HttpResponseError as error:  # it has just ended, and is being cleared up
            assert "Try again" in str(error), str(error)
            assert time.monotonic() < deadline, str(error)
            time.sleep(0.5)
    assert one.name not in [each.name for each in ml_client.jobs.list(list_view_type="All")]
try:
    ml_client.jobs.get("no_such_job")
except ResourceNotFoundError as error:
    assert "no_such_job" in str(error)
else:
    raise AssertionError("a job that isn't there")
