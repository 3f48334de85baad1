"""Data, a model, an environment and a component are registered, and used by their names."""

import time
from pathlib import Path

from azure.ai.ml import Input, MLClient, command, load_component
from azure.ai.ml._artifacts._artifact_utilities import download_artifact_from_aml_uri
from azure.ai.ml.constants import AssetTypes
from azure.ai.ml.dsl import pipeline
from azure.ai.ml.entities import Data, Environment, Model
from azure.identity import DefaultAzureCredential

ml_client = MLClient.from_config(credential=DefaultAzureCredential())
name = f"words{time.time_ns()}"

data = ml_client.data.create_or_update(Data(name=name, version="1", path="./data", type=AssetTypes.URI_FOLDER))
assert ml_client.data.get(name, version="1").id == data.id
assert ml_client.data.get(name, label="latest").version == "1"
ml_client.data.create_or_update(Data(name=name, version="2", path="./data/part1.txt", type=AssetTypes.URI_FILE))
assert [each.version for each in ml_client.data.list(name=name)] == ["2", "1"]
assert name in [each.name for each in ml_client.data.list()]

large = Path("large.bin")
large.write_bytes(bytes(range(256)) * (65 << 12))  # 65 MiB, which the client uploads in blocks
uploaded = ml_client.data.create_or_update(Data(name=f"{name}large", path=str(large), type=AssetTypes.URI_FILE))
download_artifact_from_aml_uri(uploaded.path, "large", ml_client.datastores)
assert Path("large/large.bin").read_bytes() == large.read_bytes()

model = Path("model")
model.mkdir(exist_ok=True)
(model / "weights.txt").write_text("0.5\n")
ml_client.models.create_or_update(Model(name=name, version="1", path="model", type=AssetTypes.CUSTOM_MODEL))
assert ml_client.models.get(name, version="1").type == AssetTypes.CUSTOM_MODEL
ml_client.models.archive(name, version="1")
ml_client.models.restore(name, version="1")

environment = ml_client.environments.create_or_update(
    Environment(name=name, image="mcr.microsoft.com/azureml/openmpi4.1.0-ubuntu20.04")
)
assert ml_client.environments.get(name, version=environment.version).image == environment.image

component = ml_client.components.create_or_update(load_component("component.yml"), version=str(time.time_ns()))
registered = ml_client.components.get(component.name, version=component.version)


@pipeline(default_compute="cpu-cluster")
def counting(files, model):
    step = registered(files=files, model=model)
    step.environment = f"azureml:{name}@latest"
    return {"counts": step.outputs.counts}


job = ml_client.jobs.create_or_update(
    counting(
        files=Input(type=AssetTypes.URI_FOLDER, path=f"azureml:{name}:1"),
        model=Input(type=AssetTypes.CUSTOM_MODEL, path=f"azureml:{name}:1"),
    )
)
ml_client.jobs.stream(job.name)
ml_client.jobs.download(job.name, output_name="counts", download_path="out-assets")
assert Path("out-assets/named-outputs/counts/counts.txt").read_text().split() == ["4", "0.5"]

alone = command(
    code="./src",
    command="python prepare.py --raw ${{inputs.raw}} --prepared ${{outputs.prepared}} --least 3",
    inputs={"raw": Input(type=AssetTypes.URI_FOLDER, path=f"azureml:{name}:1")},
    outputs={"prepared": {"type": "uri_folder"}},
    environment="AzureML-sklearn-1.0-ubuntu20.04-py38-cpu@latest",
    compute="cpu-cluster",
    display_name="prepare alone",
)
job = ml_client.create_or_update(alone)
ml_client.jobs.stream(job.name)
assert ml_client.jobs.get(job.name).status == "Completed"
ml_client.jobs.download(job.name, output_name="prepared", download_path="out-command")
assert sorted(path.name for path in Path("out-command").rglob("part*")) == ["part3.txt", "part4.txt"]
