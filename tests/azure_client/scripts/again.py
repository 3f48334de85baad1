"""A job is submitted again under its name: it is that job, with other labels if they differ; another job is refused."""

import time

from azure.ai.ml import MLClient, command, load_job
from azure.ai.ml.entities import Environment
from azure.core.exceptions import HttpResponseError
from azure.identity import DefaultAzureCredential

ml_client = MLClient.from_config(credential=DefaultAzureCredential())
number = time.time_ns()


def pipeline(least=2):
    job = load_job("pipeline.yml", params_override=[{"name": f"again{number}"}, {"inputs.least": least}])
    job.jobs["prepare"].environment_variables = {"KEY": "value"}
    return job


def alone(text="first"):
    environment = Environment(image="mcr.microsoft.com/azureml/openmpi4.1.0-ubuntu20.04")
    variables = {"KEY": "value"}
    job = command(command=f"echo {text}", environment=environment, environment_variables=variables, compute="cpu")
    job.name = f"alone{number}"
    return job


for make, other in ((pipeline, 3), (alone, "second")):
    first = ml_client.jobs.create_or_update(make())
    assert ml_client.jobs.create_or_update(make()).name == first.name
    shown = ml_client.jobs.get(first.name)
    shown.description = "changed"
    assert ml_client.jobs.create_or_update(shown).description == "changed"
    try:
        ml_client.jobs.create_or_update(make(other))
    except HttpResponseError as error:
        assert "this is another one" in str(error), str(error)
    else:
        raise AssertionError("another job of the same name")
