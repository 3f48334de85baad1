"""A published notebook for Azure ML's v1 SDK, as a script, runs unedited on a cluster; its data are small and local."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from parallelrun import Cluster

pytestmark = [pytest.mark.integration, pytest.mark.slow]

ENTRY_SCRIPT: Final = """
import argparse, os

def init():
    global extra
    parser = argparse.ArgumentParser()
    parser.add_argument("--extra_arg")
    extra = parser.parse_known_args()[0].extra_arg

def run(mini_batch):
    return [f"{os.path.basename(image)}: {extra}" for image in mini_batch]
"""
NOTEBOOK: Final = """
import os, tempfile
import azureml.core
print("SDK version:", azureml.core.VERSION)
from azureml.core import Workspace
ws = Workspace.from_config()
print("Workspace name: " + ws.name, "Azure region: " + ws.location, sep="\\n")

from azureml.core.compute import AmlCompute, ComputeTarget
compute_name = os.environ.get("AML_COMPUTE_CLUSTER_NAME", "cpu-cluster")
if compute_name in ws.compute_targets:
    compute_target = ws.compute_targets[compute_name]
    if compute_target and type(compute_target) is AmlCompute:
        print("found compute target. just use it. " + compute_name)
else:
    provisioning_config = AmlCompute.provisioning_configuration(vm_size="STANDARD_D2_V2", min_nodes=0, max_nodes=4)
    compute_target = ComputeTarget.create(ws, compute_name, provisioning_config)
    compute_target.wait_for_completion(show_output=True, min_node_count=None, timeout_in_minutes=20)
    print(compute_target.get_status().serialize())

from azureml.core.dataset import Dataset
from azureml.pipeline.core import Pipeline, PipelineData, PipelineParameter
from azureml.data import OutputFileDatasetConfig
from azureml.data.dataset_consumption_config import DatasetConsumptionConfig

def_data_store = ws.get_default_datastore()
mnist_ds = Dataset.File.from_files(os.environ["MNIST"])
pipeline_param = PipelineParameter(name="mnist_param", default_value=mnist_ds)
input_mnist_ds_consumption = DatasetConsumptionConfig("minist_param_config", pipeline_param).as_mount()
output_dir = OutputFileDatasetConfig(name="inferences")

from azureml.core import Environment
from azureml.core.runconfig import CondaDependencies, DEFAULT_CPU_IMAGE
batch_env = Environment(name="batch_environment")
batch_env.docker.base_image = DEFAULT_CPU_IMAGE
batch_env.spark.precache_packages = False

from azureml.pipeline.steps import ParallelRunStep, ParallelRunConfig
parallel_run_config = ParallelRunConfig(
    source_directory="Code",
    entry_script="digit_identification.py",
    mini_batch_size=PipelineParameter(name="batch_size_param", default_value="5"),
    error_threshold=10,
    output_action="append_row",
    append_row_file_name="mnist_outputs.txt",
    environment=batch_env,
    compute_target=compute_target,
    process_count_per_node=PipelineParameter(name="process_count_param", default_value=2),
    node_count=2,
)
parallelrun_step = ParallelRunStep(
    name="predict-digits-mnist",
    parallel_run_config=parallel_run_config,
    inputs=[ input_mnist_ds_consumption ],
    output=output_dir,
    arguments=[ "--extra_arg", "example_value" ],
    allow_reuse=False
)

from azureml.core import Experiment
pipeline = Pipeline(workspace=ws, steps=[parallelrun_step])
experiment = Experiment(ws, "digit_identification")
pipeline_run = experiment.submit(pipeline, pipeline_parameters={"batch_size_param": "3"})

from azureml.widgets import RunDetails
RunDetails(pipeline_run).show()
pipeline_run.wait_for_completion(show_output=True)

batch_run = pipeline_run.find_step_run(parallelrun_step.name)[0]
batch_output = batch_run.get_output_data(output_dir.name)
target_dir = tempfile.mkdtemp()
batch_output.download(local_path=target_dir)
result_file = os.path.join(target_dir, batch_output.path_on_datastore, parallel_run_config.append_row_file_name)
next(pipeline_run.get_children()).get_output_data("inferences").download(local_path="results")
for root, dirs, files in os.walk("results"):
    for file in files:
        if file.endswith("mnist_outputs.txt"):
            print("walked:", len(open(os.path.join(root, file)).read().splitlines()))
single_image_ds = Dataset.File.from_files(path=os.environ["MNIST"] + "/0.png", validate=False)
parameters = {"mnist_param": single_image_ds, "batch_size_param": "1", "process_count_param": 1}
pipeline_run_2 = experiment.submit(pipeline, pipeline_parameters=parameters)
pipeline_run_2.wait_for_completion(show_output=True)
pipeline_run_2.find_step_run(parallelrun_step.name)[0].get_output_data(output_dir.name).download("second")
print("second:", [open(os.path.join(root, file)).read() for root, _, files in os.walk("second") for file in files])
print("rows:", len(open(result_file).read().splitlines()))
print("status:", pipeline_run.get_status())
"""


def run_script(folder: Path, text: str, **environment: str) -> subprocess.CompletedProcess[str]:
    (folder / "notebook.py").write_text(text, encoding="utf-8")
    return subprocess.run(
        [sys.executable, "-m", "parallelrun.azureml_shim", "notebook.py"],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_the_published_notebook_runs_unedited(tmp_path: Path) -> None:
    for folder in ("Code", "mnist"):
        (tmp_path / folder).mkdir()
    (tmp_path / "Code" / "digit_identification.py").write_text(ENTRY_SCRIPT)
    for number in range(10):
        (tmp_path / "mnist" / f"{number}.png").write_text("")
    with Cluster(tmp_path / "cluster", nodes=2, processes=2) as cluster:
        environment = {"PARALLELRUN_URL": cluster.url, "PARALLELRUN_TOKEN": cluster.token or ""}
        done = run_script(tmp_path, NOTEBOOK, MNIST=str(tmp_path / "mnist"), **environment)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "SDK version: 0.parallelrun" in done.stdout
    assert "rows: 10" in done.stdout
    assert "walked: 10" in done.stdout
    assert "second: ['0.png: example_value\\n']" in done.stdout
    assert "status: Completed" in done.stdout


def test_a_real_azureml_is_never_shadowed(tmp_path: Path) -> None:
    (tmp_path / "site" / "azureml").mkdir(parents=True)
    (tmp_path / "site" / "azureml" / "__init__.py").write_text("VERSION = 'the real one'\n")
    done = run_script(tmp_path, "import azureml\nprint(azureml.VERSION)\n", PYTHONPATH=str(tmp_path / "site"))
    assert done.stdout == "the real one\n", done.stderr
    assert "azureml is installed here" in done.stderr


def test_a_name_that_means_nothing_here_is_told_as_such(tmp_path: Path) -> None:
    script = "from azureml.core import Webservice\nfrom azureml.opendatasets import MNIST\nprint('imported')\n"
    for used, name in (("Webservice.list", "core.Webservice"), ("MNIST", "opendatasets.MNIST")):
        done = run_script(tmp_path, f"{script}{used}()\n")
        assert done.stdout == "imported\n"
        assert f"azureml.{name} has no counterpart in ParallelRun" in done.stderr


DATASETS: Final = """
from azureml.core import Dataset, Datastore
files = Dataset.File.from_files(path="data/*/*/*.wav", partition_format="{user}/{season}/{genres}.wav", validate=False)
assert files.partition_keys == ["user", "season", "genres"]
assert files.transformations == [{"extract_columns_from_partition_format": "{user}/{season}/{genres}.wav"}]
table = Dataset.Tabular.from_delimited_files("data/*.csv", False, True, separator=";", header=False, encoding="latin1")
(step,) = table.partition_by(partition_keys=["Store"], target=("store", "res"), name="parts").transformations
options = step["read_delimited"]
assert (options["delimiter"], options["header"], options["encoding"]) == (";", "no_header", "latin1")
assert options["include_path_column"] is True
for call in (
    lambda: Dataset.Tabular.from_delimited_files("data", set_column_types={"a": 1}),
    lambda: Dataset.Tabular.from_delimited_files("data", header=2),
    lambda: Dataset.File.from_files("data", unknown=1),
    lambda: table.to_spark_dataframe(),
    lambda: table.to_pandas_dataframe(),
    lambda: Datastore.get(None, "blobs").upload(src_dir="data", target_path="data"),
    lambda: Dataset.File.upload_directory("data", target=("blobs", "data")),
    lambda: Datastore.register_azure_file_share(None, "files", "share"),
):
    try:
        call()
    except Exception as error:
        print(type(error).__name__, error)
"""


CHAINS: Final = """
from azureml.contrib.pipeline.steps import ParallelRunConfig, ParallelRunStep
from azureml.core import Dataset, Datastore, Environment, Workspace
from azureml.core.authentication import ServicePrincipalAuthentication
from azureml.data import OutputFileDatasetConfig
from azureml.pipeline.core import Pipeline, PipelineData
from azureml.pipeline.core.run import PipelineRun
from azureml.pipeline.steps import PythonScriptStep
Workspace.get("w", auth=ServicePrincipalAuthentication(tenant_id="t", service_principal_id="i"))
default_ds = Datastore(None, "workspaceblobstore")
raw = OutputFileDatasetConfig(name="Raw_Data", destination=(default_ds, "raw_data/{run-id}")).read_delimited_files()
raw = raw.register_on_complete(name="Raw_Data")
merged = PipelineData("merged", datastore=default_ds).as_dataset().parse_parquet_files()
merged = merged.register(name="merged", create_new_version=True)
scores = PipelineData("scores").as_dataset()
get = PythonScriptStep("get.py", arguments=["--from", default_ds.path("in").as_mount(), "--to", raw])
merge = PythonScriptStep("merge.py", arguments=["--out", merged], outputs=[merged])
environment = Environment("e").clone("own")
config = ParallelRunConfig(environment, "score.py", -1, "append_row", "cpu-cluster", 2, source_directory=".")
tables = [raw.as_input(name="raw"), merged.keep_columns(["store"]).as_named_input("merged_rows")]
named = Dataset.get_by_name(None, "stores").as_named_input("stores")
ParallelRunStep("of-a-name", config, inputs=[named], output="of_a_name")  # looked up when it is submitted
score = ParallelRunStep("score", config, inputs=tables, output=scores)
report = PythonScriptStep("report.py", arguments=["--in", scores.as_named_input("in").as_mount("/tmp/scores")])
pipeline = Pipeline(steps=[report, score])
assert pipeline.validate() == []
for name, step in pipeline.document()["jobs"].items():
    print(name, step.get("command"), sorted(step["outputs"]) if "outputs" in step else None)
"""


def test_chains_of_published_scripts_are_one_pipeline(tmp_path: Path) -> None:
    done = run_script(tmp_path, CHAINS)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "get_py python get.py --from ${{inputs.argument_1}} --to ${{outputs.Raw_Data}} ['Raw_Data']",
        "merge_py python merge.py --out ${{outputs.merged}} ['merged']",
        "score None ['scores']",
        "report_py python report.py --in ${{inputs.in}} None",
    ]


def test_what_a_dataset_is_told_has_its_effect_or_is_refused(tmp_path: Path) -> None:
    done = run_script(tmp_path, DATASETS)
    assert done.returncode == 0, done.stderr
    types, header, unknown, member, frame, upload, directory, share = done.stdout.splitlines()
    assert types.startswith("InvalidInput /set_column_types: column types are a step of their own (an Input with")
    assert header.startswith("InvalidInput /header: 2 is not known (one of all_files_same_headers")
    assert unknown.startswith("TypeError")
    assert member.startswith("AttributeError ParallelRun has no NamedDataset.to_spark_dataframe (see docs/")
    assert "ParallelRun has no NamedDataset.to_pandas_dataframe (run() gets the rows as DataFrames" in frame
    for line, name in ((upload, "Datastore.upload"), (directory, "Files.upload_directory")):
        assert line.startswith(f"AttributeError ParallelRun has no {name} ("), line
        assert "name a folder that they see, as Dataset.File.from_files('/data')" in line
    assert share.startswith("AttributeError ParallelRun has no Datastore.register_azure_file_share ("), share


def test_a_registered_table_is_read_as_it_was_told(tmp_path: Path) -> None:
    for folder in ("code", "data"):
        (tmp_path / folder).mkdir()
    (tmp_path / "code" / "main.py").write_text("def run(mini_batch):\n    return mini_batch['b c'].tolist()\n")
    (tmp_path / "data" / "one.csv").write_text("a;b c\n1;2,5\n3;4,5\n")
    register = """
from azureml.core import Dataset, Workspace
table = Dataset.Tabular.from_delimited_files("data/*.csv", separator=";")
table.register(Workspace.from_config(), name="sales", description="of a year")
"""
    with Cluster(tmp_path / "cluster") as cluster, cluster.client() as client:
        done = run_script(tmp_path, register, PARALLELRUN_URL=cluster.url, PARALLELRUN_TOKEN=cluster.token or "")
        assert done.returncode == 0, done.stderr
        assert client.data.get("sales").description == "of a year"
        table = {"type": "mltable", "path": "azureml:sales@latest"}
        job = client.jobs.create({"code": str(tmp_path / "code"), "entry_script": "main.py", "inputs": {"data": table}})
        client.jobs.wait(job.id)
        rows = client.outputs.download(job.id, "parallel_run_step.txt", tmp_path).read_text()
    assert sorted(rows.split()) == ["2,5", "4,5"]
