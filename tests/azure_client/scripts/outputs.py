"""Outputs of each form land where the document says, and are downloaded by their names; what is tracked, as well."""

import os
from pathlib import Path

import requests
from azure.ai.ml import Input, MLClient, Output, command
from azure.identity import DefaultAzureCredential

ml_client = MLClient.from_config(credential=DefaultAzureCredential())
ENVIRONMENT = "azureml:AzureML-sklearn-1.0-ubuntu20.04-py38-cpu@latest"
IN_THE_DEFAULT_DATASTORE = "azureml://datastores/workspaceblobstore/paths/landed/${{name}}"


def of_the_api(path):
    """What the REST API answers."""
    url = os.environ["AZUREML_DEV_URL_MFE"].removesuffix("/azure")
    headers = {"Authorization": f"Bearer {os.environ['IDENTITY_HEADER']}"}
    return requests.get(f"{url}/v1/{path}", headers=headers, timeout=60).json()


# Each output is a file or a folder; its mode and its place are what differs.
outputs = {
    "folder": Output(type="uri_folder"),
    "file": Output(type="uri_file"),
    "sent": Output(type="uri_folder", mode="upload"),
    "mounted": Output(type="uri_file", mode="rw_mount"),
    "placed": Output(type="uri_folder", path=f"{IN_THE_DEFAULT_DATASTORE}/folder/"),
    "placed_file": Output(type="uri_file", path=f"{IN_THE_DEFAULT_DATASTORE}/one.txt"),
}
files = ["file", "mounted", "placed_file"]
writes = [f"echo {name} > ${{{{outputs.{name}}}}}{'' if name in files else '/a.txt'}" for name in outputs]
job = command(command="; ".join(writes), environment=ENVIRONMENT, compute="cpu-cluster", outputs=outputs)
job = ml_client.jobs.create_or_update(job)
ml_client.jobs.stream(job.name)
assert ml_client.jobs.get(job.name).status == "Completed"
for name in outputs:
    ml_client.jobs.download(job.name, output_name=name, download_path="out-each")
    (found,) = [path for path in Path("out-each/named-outputs", name).rglob("*") if path.is_file()]
    assert found.read_text() == f"{name}\n", (name, found)
ml_client.jobs.download(job.name, all=True, download_path="out-all")
named = {path.name for path in Path("out-all/named-outputs").iterdir()}
assert set(outputs) <= named, named

# What is in the default datastore is read by its path, by whoever knows that.
read = command(
    command="cat ${{inputs.folder}}/a.txt ${{inputs.file}} > ${{outputs.both}}",
    environment=ENVIRONMENT,
    compute="serverless",
    inputs={
        "folder": Input(type="uri_folder", path=IN_THE_DEFAULT_DATASTORE.replace("${{name}}", job.name) + "/folder"),
        "file": Input(type="uri_file", path=IN_THE_DEFAULT_DATASTORE.replace("${{name}}", job.name) + "/one.txt"),
    },
    outputs={"both": Output(type="uri_file")},
)
read = ml_client.jobs.create_or_update(read)
ml_client.jobs.stream(read.name)
ml_client.jobs.download(read.name, output_name="both", download_path="out-read")
(both,) = [path for path in Path("out-read/named-outputs/both").rglob("*") if path.is_file()]
assert both.read_text() == "placed\nplaced_file\n"

# What a command logs with MLflow is the job's: its files are downloaded with it.
tags = {"of": f"tracks-{ml_client.workspace_name}"}
track = command(command="python track.py", code="./tracks", environment=ENVIRONMENT, compute="cpu-cluster", tags=tags)
track = ml_client.jobs.create_or_update(track)
ml_client.jobs.stream(track.name)
assert ml_client.jobs.get(track.name).status == "Completed"
ml_client.jobs.download(track.name, all=True, download_path="out-track")
assert Path("out-track/artifacts/helloworld.txt").read_text() == "hello world, tracked\n"
(own,) = [each for each in of_the_api("jobs")["items"] if each["tags"].items() >= tags.items()]
logged = of_the_api(f"jobs/{own['id']}/metrics")
assert "hello_metric" in str(logged), logged
assert "hello_param" in str(logged), logged
