"""What the client sends becomes the document that a user would have written."""

from typing import Any

import pytest

from parallelrun_api.azure.answers import NotSupported
from parallelrun_api.azure.documents import component_document, document_of
from parallelrun_core.errors import InvalidInput

WS = "/subscriptions/s/resourceGroups/g/providers/Microsoft.MachineLearningServices/workspaces/w"


def node(**fields: Any) -> dict[str, Any]:
    sent = {"jobType": "Pipeline", "jobs": {"step": {"type": "parallel", **fields}}}
    result: dict[str, Any] = document_of(sent)["jobs"]["step"]
    return result


def test_a_pipeline_with_its_labels_and_settings() -> None:
    document = document_of(
        {
            "jobType": "Pipeline",
            "displayName": "scoring",
            "experimentName": "exp",
            "tags": {"n": 1},
            "settings": {"default_compute": f"{WS}/computes/cpu", "_source": "DSL", "force_rerun": True},
            "jobs": {},
            "componentId": f"{WS}/components/c/versions/1",
        }
    )

    assert document == {
        "type": "pipeline",
        "display_name": "scoring",
        "experiment_name": "exp",
        "tags": {"n": "1"},
        "settings": {"default_compute": "cpu", "force_rerun": True},
        "component": f"azureml:{WS}/components/c/versions/1",
    }


def test_a_step_with_a_component_keeps_what_it_sets_itself() -> None:
    component = f"{WS}/components/azureml_anonymous/versions/1"

    assert node(componentId=component, name="x", _source="BUILDER", mini_batch_size=2, compute=f"{WS}/computes/c") == {
        "type": "parallel",
        "component": f"azureml:{component}",
        "mini_batch_size": "2",
        "compute": "azureml:c",
    }


def test_a_step_with_what_the_client_calls_otherwise_has_the_names_of_documents() -> None:
    sent = {
        "computeId": f"{WS}/computes/cpu",
        "componentId": f"{WS}/components/c/versions/1",
        "partition_keys": '["Store", "Brand"]',
        "mini_batch_size": 0,
        "error_threshold": None,
        "retry_settings": {"max_retries": None, "timeout": 60},
        "resources": {"instance_count": 2, "maxInstanceCount": 4, "properties": {}, "shm_size": None},
        "distribution": {"distribution_type": "PyTorch", "process_count_per_instance": 1},
        "limits": {"job_limits_type": "Command", "timeout": "PT10M"},
        "identity": {"identity_type": "UserIdentity"},
        "queue_settings": {},
    }

    step = node(**sent)

    assert step == {
        "type": "parallel",
        "compute": "azureml:cpu",
        "component": f"azureml:{WS}/components/c/versions/1",
        "partition_keys": ["Store", "Brand"],
        "retry_settings": {"timeout": 60},
        "resources": {"instance_count": 2, "max_instance_count": 4},
        "distribution": {"type": "pytorch", "process_count_per_instance": 1},
        "limits": {"timeout": 600},
        "identity": {"type": "user_identity"},
    }
    pipeline = document_of({"jobType": "Pipeline", "jobs": {"outer": {"type": "pipeline", "jobs": {"step": sent}}}})
    assert pipeline["jobs"]["outer"]["jobs"]["step"] == {key: step[key] for key in step if key != "type"}


@pytest.mark.parametrize("compute", ["azureml:serverless", "${{parent.inputs.cluster}}", "cpu-cluster"])
def test_the_name_of_a_compute_stays_as_it_is(compute: str) -> None:
    assert node(computeId=compute)["compute"] == compute


def test_a_command_on_this_machine_has_the_variables_of_its_author() -> None:
    sent = {
        "jobType": "Command",
        "command": "true",
        "environmentVariables": {"A": "1", "AZUREML_COMPUTE_USE_COMMON_RUNTIME": "true"},
        "resources": {"properties": {"IsLocal": {"IsLocal": True}}},
    }

    local = document_of(sent)
    assert (local["compute"], local["environment_variables"]) == ("local", {"A": "1"})

    elsewhere = document_of({**sent, "resources": {"instanceCount": 1}})
    assert "compute" not in elsewhere
    assert elsewhere["environment_variables"] == sent["environmentVariables"]


def test_inputs_and_outputs_of_all_forms() -> None:
    step = node(
        inputs={
            "bound": {"job_input_type": "literal", "value": "${{parent.inputs.x}}"},
            "number": {"job_input_type": "literal", "value": "0.5"},
            "data": {"job_input_type": "uri_folder", "uri": "azureml://datastores/d/paths/x", "mode": "ReadOnlyMount"},
            "absent": {"job_input_type": "uri_folder"},
        },
        outputs={
            "bound": {"type": "literal", "value": "${{parent.outputs.y}}"},
            "moved": {"type": "literal", "value": "${{parent.outputs.z}}", "mode": "ReadWriteMount"},
            "own": {"job_output_type": "uri_file"},
        },
    )

    assert step["inputs"] == {
        "bound": "${{parent.inputs.x}}",
        "number": "0.5",
        "data": {"type": "uri_folder", "path": "azureml://datastores/d/paths/x", "mode": "ro_mount"},
    }
    assert step["outputs"] == {
        "bound": "${{parent.outputs.y}}",
        "moved": {"path": "${{parent.outputs.z}}", "mode": "rw_mount"},
        "own": {"type": "uri_file"},
    }


def test_a_registered_output_has_its_name() -> None:
    sent = {
        "jobType": "Pipeline",
        "outputs": {"o": {"jobOutputType": "uri_folder", "assetName": "n", "assetVersion": "3"}},
    }

    assert document_of(sent)["outputs"]["o"] == {"type": "uri_folder", "name": "n", "version": "3"}


def test_a_command() -> None:
    document = document_of(
        {
            "jobType": "Command",
            "componentId": f"{WS}/components/c/versions/1",
            "command": "python train.py --rate ${{inputs.rate}}",
            "codeId": f"{WS}/codes/c/versions/1",
            "environmentId": f"azureml:{WS}/environments/e/versions/2",
            "environmentVariables": {"A": "1"},
            "inputs": {"rate": {"jobInputType": "literal", "value": "0.1"}},
            "outputs": {"default": {"jobOutputType": "uri_folder"}, "model": {"jobOutputType": "uri_folder"}},
            "limits": {"jobLimitsType": "Command", "timeout": "PT1H30M"},
            "resources": {"instanceCount": 1, "shmSize": "2g", "dockerArgsList": ["--ipc=host"], "properties": {}},
            "identity": {"identityType": "AMLToken"},
            "queueSettings": {"jobTier": "spot"},
            "services": {},
        }
    )

    assert document == {
        "type": "command",
        "queue_settings": {"jobTier": "spot"},
        "component": f"azureml:{WS}/components/c/versions/1",
        "command": "python train.py --rate ${{inputs.rate}}",
        "code": f"azureml:{WS}/codes/c/versions/1",
        "environment": f"azureml:{WS}/environments/e/versions/2",
        "environment_variables": {"A": "1"},
        "inputs": {"rate": "0.1"},
        "outputs": {"model": {"type": "uri_folder"}},
        "resources": {"instance_count": 1, "shm_size": "2g", "docker_args": ["--ipc=host"]},
        "limits": {"timeout": 5400},
        "identity": {"type": "aml_token"},
    }
    named = {"jobType": "Command", "command": "ls > ${{ outputs.default }}/x", "outputs": {"default": {"uri": "/o"}}}
    assert document_of(named)["outputs"] == {"default": {"path": "/o"}}, "its user has one of this name"


@pytest.mark.parametrize("kind", ["AutoML", "Sweep", "Spark", "", "Labeling"])
def test_jobs_out_of_reach_are_refused_with_words(kind: str) -> None:
    with pytest.raises(NotSupported, match="can't be run here"):
        document_of({"jobType": kind})


def test_what_is_no_job_is_refused_with_its_place() -> None:
    with pytest.raises(InvalidInput, match="/properties/jobs"):
        document_of({"jobType": "Pipeline", "jobs": ["step"]})
    with pytest.raises(InvalidInput, match="duration"):
        document_of({"jobType": "Command", "limits": {"timeout": "soon"}})
    deep: dict[str, Any] = {}
    for _ in range(20):
        deep = {"type": "pipeline", "jobs": {"inner": deep}}
    with pytest.raises(InvalidInput, match="nested"):
        document_of({"jobType": "Pipeline", "jobs": {"step": deep}})


def test_the_document_of_a_component_is_what_was_sent() -> None:
    spec = {"name": "c", "type": "command", "command": "true", "_source": "YAML.COMPONENT", "description": None}

    assert component_document(spec) == {"name": "c", "type": "command", "command": "true"}
