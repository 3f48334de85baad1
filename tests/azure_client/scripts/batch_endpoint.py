"""A model is deployed behind a batch endpoint, which is invoked with data."""

import time
from pathlib import Path

from azure.ai.ml import Input, MLClient, Output, command
from azure.ai.ml.constants import AssetTypes, BatchDeploymentOutputAction
from azure.ai.ml.dsl import pipeline
from azure.ai.ml.entities import (
    BatchDeployment,
    BatchEndpoint,
    BatchRetrySettings,
    CodeConfiguration,
    Data,
    Environment,
    Model,
    PipelineComponentBatchDeployment,
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

# A pipeline behind the endpoint gets a registered data asset, and its output a place in the default datastore.
count = command(
    name="count",
    inputs={"files": Input(type="uri_folder")},
    outputs={"counts": Output(type="uri_folder")},
    command="ls ${{inputs.files}} | wc -l > ${{outputs.counts}}/counts.txt",
    environment=Environment(image="mcr.microsoft.com/azureml/openmpi4.1.0-ubuntu20.04"),
)


@pipeline(name="counting")
def counting(files: Input(type="uri_folder")):
    return {"counts": count(files=files).outputs.counts}


component = ml_client.components.create_or_update(counting(files=Input(type="uri_folder", path="./data")).component)
settings = {"continue_on_step_failure": False, "default_compute": "cpu-cluster"}
deployment = PipelineComponentBatchDeployment(name="second", endpoint_name=name, component=component, settings=settings)
ml_client.batch_deployments.begin_create_or_update(deployment).result()
words = ml_client.data.create_or_update(Data(name=f"words-{time.time_ns()}", type="uri_folder", path="./data"))
job = ml_client.batch_endpoints.invoke(
    endpoint_name=name,
    deployment_name="second",
    inputs={"files": Input(type="uri_folder", path=words.id)},
    outputs={"counts": Output(type="uri_folder", path=f"azureml://datastores/workspaceblobstore/paths/counted/{name}")},
)
ml_client.jobs.stream(job.name)
ml_client.jobs.download(job.name, output_name="counts", download_path="out-batch-pipeline")
(counts,) = Path("out-batch-pipeline").rglob("counts.txt")
assert counts.read_text().strip() == "4"

# A model that was registered as one of MLflow needs neither a scoring script nor an environment.
(model / "MLmodel").write_text("flavors: {}\n")
registered = ml_client.models.create_or_update(
    Model(path="batch-model", type=AssetTypes.MLFLOW_MODEL, name=f"tracked-{time.time_ns()}")
)
deployment = BatchDeployment(name="third", endpoint_name=name, model=registered, compute="cpu-cluster")
ml_client.batch_deployments.begin_create_or_update(deployment).result()

for each in ("first", "second", "third"):
    ml_client.batch_deployments.begin_delete(each, endpoint_name=name).result()
assert list(ml_client.batch_deployments.list(endpoint_name=name)) == []
ml_client.batch_endpoints.begin_delete(name).result()
