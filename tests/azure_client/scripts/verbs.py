"""What notebooks ask of a workspace beside jobs; components without a version; outputs of jobs as inputs of others."""

import contextlib
from pathlib import Path

from azure.ai.ml import Input, MLClient, command, load_component, load_job
from azure.ai.ml.entities import (
    AccountKeyConfiguration,
    AzureBlobDatastore,
    AzureDataLakeGen2Datastore,
    AzureFileDatastore,
    BuildContext,
    Data,
    Environment,
    Model,
)
from azure.core.exceptions import HttpResponseError
from azure.identity import DefaultAzureCredential

ml_client = MLClient.from_config(credential=DefaultAzureCredential())
subscription = MLClient(DefaultAzureCredential(), "a", "b")

assert [workspace.name for workspace in subscription.workspaces.list()]
assert ml_client.workspaces.get(ml_client.workspace_name).name == ml_client.workspace_name
assert ml_client.datastores.get_default().name == "workspaceblobstore"
assert ml_client.jobs.validate(load_job("pipeline.yml")).passed
assert ml_client.components.validate(load_component("component.yml")).passed
assert len(list(ml_client.compute.list_nodes("cpu-cluster"))) >= 1
assert list(ml_client.compute.list_usage(location="local")) == []
assert list(ml_client.compute.list_sizes(location="local")) == []
try:
    ml_client.workspaces.get_keys(ml_client.workspace_name)
except HttpResponseError as error:
    assert "'listKeys'" in str(error), str(error)
else:
    raise AssertionError("keys of a workspace")

component = load_component("component.yml")
made = ml_client.components.create_or_update(component)
assert made.version
latest = ml_client.components.get("count_files")
assert latest.version == ml_client.components.get("count_files", label="latest").version
assert "azureml_anonymous" not in [each.name for each in ml_client.components.list()]
assert "CliV2AnonymousEnvironment" not in [each.name for each in ml_client.environments.list()]

# In the default datastore: where the processes of each job are a user of their own, its folder is for it alone.
kept = {"type": "uri_folder", "path": "azureml://datastores/workspaceblobstore/paths/kept/${{name}}"}
overrides = [{"tags": {"color": "green"}}, {"outputs": {"counts": kept}}]
first = load_job("hello_world_output.yml", params_override=overrides)
first = ml_client.jobs.create_or_update(first)
ml_client.jobs.stream(first.name)
model = Model(name="counted", path=f"azureml://jobs/{first.name}/outputs/counts", type="custom_model")
made = ml_client.models.create_or_update(model)
assert made.version
ml_client.models.download("counted", version=made.version, download_path="out-model")
assert list(Path("out-model").rglob("counts.txt"))
written = f"azureml://jobs/{first.name}/outputs/artifacts/paths/outputs/helloworld.txt"
try:
    made = ml_client.models.create_or_update(Model(name="written", path=written, type="custom_model"))
except HttpResponseError as error:
    assert "jobs are users of their own here" in str(error), str(error)
else:
    ml_client.models.download("written", version=made.version, download_path="out-written")
    files = [path for path in Path("out-written").rglob("helloworld.txt") if path.is_file()]
    assert [path.read_text() for path in files] == ["hello world\n"]
second = command(
    command="cat ${{inputs.counts}} ${{inputs.model}}/counts.txt > ${{outputs.copied}}/both.txt",
    environment="azureml://registries/azureml/environments/sklearn-1.5/labels/latest",
    compute="serverless",
    inputs={
        "counts": Input(type="uri_file", path=f"azureml://jobs/{first.name}/outputs/counts/paths/counts.txt"),
        "model": Input(type="custom_model", path="azureml:counted@latest"),
    },
    outputs={"copied": {"type": "uri_folder"}},
)
second = ml_client.jobs.create_or_update(second)
ml_client.jobs.stream(second.name)
ml_client.jobs.download(second.name, output_name="copied", download_path="out-both")
assert Path("out-both/named-outputs/copied/both.txt").read_text() == "1\n1\n"

# Components with code: made again with the same content, archived, restored and downloaded.
name = f"score_{ml_client.workspace_name.replace('-', '_')}"
for _ in range(2):
    scoring = load_component("score_component.yml", params_override=[{"name": name}])
    assert ml_client.components.create_or_update(scoring).version == scoring.version
ml_client.components.archive(scoring.name, version=scoring.version)
assert scoring.version not in [each.version for each in ml_client.components.list(name=scoring.name)]
ml_client.components.restore(scoring.name, version=scoring.version)
if hasattr(ml_client.components, "download"):
    ml_client.components.download(scoring.name, version=scoring.version, download_path="out-component")
    assert list(Path("out-component").rglob("score.py"))

# A name with all of its versions is hidden, and shown again.
environment = Environment(name=name, image="some/image", version="1")
ml_client.environments.create_or_update(environment)
ml_client.environments.archive(name)
assert name not in [each.name for each in ml_client.environments.list()]
assert name in [each.name for each in ml_client.environments.list(list_view_type="ArchivedOnly")]
ml_client.environments.restore(name)
assert name in [each.name for each in ml_client.environments.list()]

# Data and models: listed, hidden and shown again.
ml_client.data.create_or_update(Data(name=name, version="1", path="./data", type="uri_folder"))
ml_client.data.archive(name, version="1")
assert list(ml_client.data.list(name=name)) == []
assert [each.version for each in ml_client.data.list(name=name, list_view_type="ArchivedOnly")] == ["1"]
ml_client.data.restore(name, version="1")
assert [each.version for each in ml_client.data.list(name=name)] == ["1"]
assert "counted" in [each.name for each in ml_client.models.list()]
with contextlib.suppress(TypeError):  # of the client itself, in its latest releases
    assert list(ml_client.data.list_materialization_status(name)) == []

# Environments of packages, and of a Dockerfile.
ml_client.environments.create_or_update(
    Environment(name=f"{name}_conda", image="some/image", conda_file="packages.yml", version="1")
)
shown = ml_client.environments.get(f"{name}_conda", version="1")
assert shown.conda_file["dependencies"] == ["python=3.11", {"pip": ["six"]}], shown.conda_file
Path("context").mkdir(exist_ok=True)
Path("context/Dockerfile").write_text("FROM some/image\n")
ml_client.environments.create_or_update(
    Environment(name=f"{name}_built", build=BuildContext(path="context"), version="1")
)
shown = ml_client.environments.get(f"{name}_built", version="1")
assert shown.build.path, shown
assert {f"{name}_conda", f"{name}_built"} <= {each.name for each in ml_client.environments.list()}

# Datastores, without a secret.
blobs = AzureBlobDatastore(name="verbs", account_name="account", container_name="container", description="theirs")
assert ml_client.datastores.create_or_update(blobs).container_name == "container"
assert "verbs" in [each.name for each in ml_client.datastores.list()]
ml_client.datastores.delete("verbs")
assert "verbs" not in [each.name for each in ml_client.datastores.list()]
lake = AzureDataLakeGen2Datastore(name="verbs_lake", account_name="account", filesystem="container", description="deep")
assert ml_client.datastores.create_or_update(lake).filesystem == "container"
assert ml_client.datastores.get("verbs_lake").type == lake.type
assert "verbs_lake" in [each.name for each in ml_client.datastores.list()]
ml_client.datastores.delete("verbs_lake")
key = AccountKeyConfiguration(account_key="c2VjcmV0")
files = AzureFileDatastore(name="verbs_files", account_name="account", file_share_name="share", credentials=key)
try:
    ml_client.datastores.create_or_update(files)
except HttpResponseError as error:
    assert "ParallelRun has no datastores of type 'AzureFile'" in str(error), str(error)
    assert "docs/storage.md" in str(error), str(error)
else:
    raise AssertionError("a file share")
blobs.credentials = AccountKeyConfiguration(account_key="c2VjcmV0")
try:
    ml_client.datastores.create_or_update(blobs)
except HttpResponseError as error:
    assert "PARALLELRUN_SECRETS_DIR" in str(error), str(error)
    assert "c2VjcmV0" not in str(error), str(error)
else:
    raise AssertionError("a datastore with a key")
