"""The deployments and the data that clients send become the documents that users write."""

import pytest

from parallelrun_api.azure.deployments import data_given, deployment_document
from parallelrun_core.endpoints.invoking import read_invocation
from parallelrun_core.errors import InvalidInput

WS = "/subscriptions/s/resourceGroups/g/providers/Microsoft.MachineLearningServices/workspaces/w"


def test_a_deployment_of_a_model() -> None:
    document = deployment_document(
        {
            "model": {"referenceType": "Id", "assetId": f"{WS}/models/m/versions/1"},
            "codeConfiguration": {"codeId": f"{WS}/codes/c/versions/1", "scoringScript": "score.py"},
            "environmentId": f"{WS}/environments/e/versions/1",
            "compute": f"{WS}/computes/gpus",
            "resources": {"instanceCount": 2, "instanceType": "gpu", "properties": {}},
            "miniBatchSize": 10,
            "maxConcurrencyPerInstance": 1,
            "outputAction": "AppendRow",
            "outputFileName": "predictions.csv",
            "loggingLevel": "Info",
            "errorThreshold": -1,
            "retrySettings": {"maxRetries": 3, "timeout": "PT30S"},
        }
    )

    assert document == {
        "description": "",
        "type": "model",
        "model": f"azureml:{WS}/models/m/versions/1",
        "code_configuration": {"code": f"azureml:{WS}/codes/c/versions/1", "scoring_script": "score.py"},
        "environment": f"azureml:{WS}/environments/e/versions/1",
        "compute": "azureml:gpus",
        "resources": {"instance_count": 2, "instance_type": "gpu"},
        "settings": {
            "max_concurrency_per_instance": 1,
            "mini_batch_size": 10,
            "output_file_name": "predictions.csv",
            "error_threshold": -1,
            "output_action": "append_row",
            "logging_level": "INFO",
            "retry_settings": {"max_retries": 3, "timeout": 30},
        },
    }


def test_a_deployment_of_a_pipeline() -> None:
    component = f"{WS}/components/c/versions/1"
    settings = {"default_compute": "cpu", "ComponentDeployment.Settings.continue_on_step_failure": "False", "x": "y"}

    document = deployment_document(
        {"deploymentConfiguration": {"componentId": {"assetId": component}, "settings": settings}}
    )

    assert document == {
        "description": "",
        "type": "pipeline",
        "component": f"azureml:{component}",
        "settings": {"default_compute": "cpu", "continue_on_step_failure": False},
    }


def test_data_with_and_without_a_name() -> None:
    folder = {"jobInputType": "uri_folder", "uri": "azureml://datastores/d/paths/x"}

    assert data_given({"inputData": {"UriFolder": folder}}) == {
        "input": {"path": "azureml://datastores/d/paths/x", "type": "uri_folder"}
    }
    assert data_given({"inputData": {"files": folder, "rate": {"jobInputType": "literal", "value": "2"}}}) == {
        "inputs": {"files": {"path": "azureml://datastores/d/paths/x", "type": "uri_folder"}, "rate": "2"}
    }
    assert data_given({}) == {}
    with pytest.raises(InvalidInput, match="mapping"):
        data_given({"inputData": ["x"]})


def test_what_an_invocation_changes_of_its_deployment_is_not_lost() -> None:
    sent = {
        "inputData": {"UriFolder": {"jobInputType": "UriFolder", "uri": "azureml://datastores/d/paths/x"}},
        "outputData": {"score": {"jobOutputType": "UriFile", "uri": "azureml://datastores/d/paths/y/rows.csv"}},
        "outputDataset": {"datastoreId": "/subscriptions/a/datastores/kept", "path": "z"}, "name": "today",
        "outputFileName": "other.csv", "miniBatchSize": 4, "errorThreshold": 2, "compute": {"instanceCount": 3},
        "retrySettings": {"maxRetries": 1, "timeout": "PT30S"}, "properties": {"experimentName": "petals"},
    }  # fmt: skip
    given = data_given(sent)
    read_invocation(given)
    assert given == {
        "input": {"path": "azureml://datastores/d/paths/x", "type": "uri_folder"},
        "outputs": {"score": {"path": "azureml://datastores/d/paths/y/rows.csv", "type": "uri_file"}},
        "output_path": "azureml://datastores/kept/paths/z", "output_file_name": "other.csv", "job_name": "today",
        "mini_batch_size": 4, "error_threshold": 2, "instance_count": 3, "experiment_name": "petals",
        "retry_settings": {"max_retries": 1, "timeout": 30},
    }  # fmt: skip
