"""A model is deployed behind a batch endpoint, which is invoked with data."""

import time
from pathlib import Path

from azure.ai.ml import Input, MLClient, Output
from azure.ai.ml.constants import AssetTypes, BatchDeploymentOutputAction
from azure.ai.ml.entities import (
    BatchDeployment,
    BatchEndpoint,
    BatchRetrySettings,
    CodeConfiguration,
    Environment,
    Model,
)
from azure.identity import DefaultAzureCredential

ml_client = MLClient.from_config(credential=DefaultAzureCredential())
name = f"scoring-{time.time_ns()}"

model = Path("batch-model")
model.mkdir(exist_ok=True)
(model / "weights.txt").write_text("0.5\n")

ml_client.begin_create_or_update(BatchEndpoint(name=name, description="scores words")).result()
deployment = BatchDeployment(
    name="first",
    endpoint_name=name,
    model=Model(path="batch-model", type=AssetTypes.CUSTOM_MODEL, name=f"weights-{time.time_ns()}"),
    code_configuration=CodeConfiguration(code="./src", scoring_script="score.py"),
    environment=Environment(image="mcr.microsoft.com/azureml/openmpi4.1.0-ubuntu20.04"),
    compute="cpu-cluster",
    instance_count=1,
    max_concurrency_per_instance=2,
    mini_batch_size=2,
    output_action=BatchDeploymentOutputAction.APPEND_ROW,
    output_file_name="predictions.csv",
    retry_settings=BatchRetrySettings(max_retries=1, timeout=60),
)
ml_client.batch_deployments.begin_create_or_update(deployment).result()
assert ml_client.batch_deployments.get("first", endpoint_name=name).name == "first"
endpoint = ml_client.batch_endpoints.get(name)
endpoint.defaults = {"deployment_name": "first"}
ml_client.batch_endpoints.begin_create_or_update(endpoint).result()
assert name in [each.name for each in ml_client.batch_endpoints.list()]
assert [each.name for each in ml_client.batch_deployments.list(endpoint_name=name)] == ["first"]

job = ml_client.batch_endpoints.invoke(endpoint_name=name, input=Input(type=AssetTypes.URI_FOLDER, path="./data"))
ml_client.jobs.stream(job.name)
assert ml_client.jobs.get(job.name).status == "Completed"
assert [each.name for each in ml_client.batch_endpoints.list_jobs(name)] == [job.name]
(listed,) = ml_client.batch_deployments.list_jobs(name, name="first")
assert listed.name == job.name
(scoring,) = ml_client.jobs.list(parent_job_name=job.name)
ml_client.jobs.download(scoring.name, output_name="score", download_path="out-batch")
(rows,) = Path("out-batch").rglob("predictions.csv")
assert sorted(rows.read_text().split()) == [f"part{n}.txt,{n}" for n in range(1, 5)]

# An invocation says where its rows go, and what differs from the deployment.
place = f"azureml://datastores/workspaceblobstore/paths/scored/{name}/rows.csv"
job = ml_client.batch_endpoints.invoke(
    endpoint_name=name,
    deployment_name="first",
    inputs={"words": Input(type=AssetTypes.URI_FOLDER, path="./data")},
    outputs={"score": Output(type=AssetTypes.URI_FILE, path=place)},
    params_override=[{"mini_batch_size": 4}],
)
ml_client.jobs.stream(job.name)
(scoring,) = ml_client.jobs.list(parent_job_name=job.name)
ml_client.jobs.download(scoring.name, output_name="score", download_path="out-batch-file")
(rows,) = Path("out-batch-file").rglob("rows.csv")
assert sorted(rows.read_text().split()) == [f"part{n}.txt,{n}" for n in range(1, 5)]

ml_client.batch_deployments.begin_delete("first", endpoint_name=name).result()
assert list(ml_client.batch_deployments.list(endpoint_name=name)) == []
ml_client.batch_endpoints.begin_delete(name).result()
