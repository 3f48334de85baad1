"""A job is canceled while it runs, and what can't be run is refused in words."""

import time

from azure.ai.ml import MLClient, load_job
from azure.ai.ml.entities import AmlCompute
from azure.ai.ml.exceptions import JobException
from azure.core.exceptions import HttpResponseError, ResourceNotFoundError
from azure.identity import DefaultAzureCredential

ml_client = MLClient.from_config(credential=DefaultAzureCredential())

try:
    ml_client.compute.get("cpu-cluster")
except ResourceNotFoundError:
    ml_client.compute.begin_create_or_update(
        AmlCompute(name="cpu-cluster", size="STANDARD_D2", max_instances=2)
    ).result()

job = load_job("pipeline.yml")
job.jobs["score"].task.entry_script = "slow.py"
job = ml_client.jobs.create_or_update(job)
deadline = time.monotonic() + 60
while ml_client.jobs.get(job.name).status not in ("Running", "Completed", "Failed"):
    assert time.monotonic() < deadline
    time.sleep(0.5)
try:  # as in Azure ML, whose client asks for the state
    ml_client.jobs.download(job.name, all=True, download_path="out-too-early")
except JobException as error:
    assert "Download is allowed only in states" in str(error), str(error)
else:
    raise AssertionError("a download of a job that has not ended")
ml_client.jobs.begin_cancel(job.name).wait(60)
while (status := ml_client.jobs.get(job.name).status) not in ("Canceled", "Completed", "Failed"):
    assert time.monotonic() < deadline
    time.sleep(0.5)
assert status == "Canceled", status

try:
    ml_client.jobs.get("no_such_job")
except ResourceNotFoundError as error:
    assert "no_such_job" in str(error)
else:
    raise AssertionError("a job that nobody has submitted")

nowhere = "azureml://datastores/workspaceblobstore/paths/nothing/here"
wrong = load_job("pipeline.yml", params_override=[{"inputs.raw.path": nowhere}])
try:
    ml_client.jobs.create_or_update(wrong)
except HttpResponseError as error:
    assert error.status_code == 400
    assert "/inputs/raw" in str(error), str(error)
else:
    raise AssertionError("an input that is not there")
