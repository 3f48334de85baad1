"""What commands write to `./outputs` is kept: downloaded with a job, and read by other steps."""

from pathlib import Path

from azure.ai.ml import MLClient, load_job
from azure.core.exceptions import HttpResponseError
from azure.identity import DefaultAzureCredential

ml_client = MLClient.from_config(credential=DefaultAzureCredential())

hello = ml_client.jobs.create_or_update(load_job("hello_world_output.yml"))
steps = ml_client.jobs.create_or_update(load_job("artifacts.yml"))
ml_client.jobs.stream(hello.name)
ml_client.jobs.download(hello.name, all=True, download_path="out-artifacts")
assert Path("out-artifacts/artifacts/outputs/helloworld.txt").read_text() == "hello world\n"
assert Path("out-artifacts/named-outputs/counts/counts.txt").read_text() == "1\n"
assert not list(Path("out-artifacts/artifacts").rglob("counts.txt"))

try:
    ml_client.jobs.download(hello.name, output_name="count", download_path="out-none")
except HttpResponseError as error:
    assert f"job {hello.name} has no output 'count'" in str(error), str(error)
    assert "counts" in str(error), str(error)
else:
    raise AssertionError("an output that the job doesn't have")

ml_client.jobs.stream(steps.name)
assert ml_client.jobs.get(steps.name).status == "Completed"
children = {child.display_name: child for child in ml_client.jobs.list(parent_job_name=steps.name)}
ml_client.jobs.download(children["hello_job"].name, all=True, download_path="out-step")
assert Path("out-step/artifacts/outputs/world.txt").read_text() == "world\n"
assert Path("out-step/named-outputs/artifacts/outputs/world.txt").read_text() == "world\n"
ml_client.jobs.download(steps.name, output_name="copied", download_path="out-copied")
assert Path("out-copied/named-outputs/copied/world.txt").read_text() == "world\n"
