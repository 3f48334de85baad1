"""A parallel step in a pipeline that is written in Python: submit, follow, list, download."""

from pathlib import Path

from azure.ai.ml import Input, MLClient, Output
from azure.ai.ml.constants import AssetTypes
from azure.ai.ml.dsl import pipeline
from azure.ai.ml.entities import Environment
from azure.ai.ml.parallel import RunFunction, parallel_run_function
from azure.identity import DefaultAzureCredential

credential = DefaultAzureCredential()
credential.get_token("https://management.azure.com/.default")
ml_client = MLClient.from_config(credential=credential)

score = parallel_run_function(
    name="score",
    display_name="Score files",
    inputs={"files": Input(type=AssetTypes.URI_FOLDER, mode="ro_mount")},
    outputs={"scores": Output(type=AssetTypes.URI_FILE)},
    input_data="${{inputs.files}}",
    instance_count=1,
    max_concurrency_per_instance=2,
    mini_batch_size="2",
    mini_batch_error_threshold=0,
    retry_settings={"max_retries": 1, "timeout": 60},
    logging_level="DEBUG",
    task=RunFunction(
        code="./src",
        entry_script="score.py",
        environment=Environment(image="mcr.microsoft.com/azureml/openmpi4.1.0-ubuntu20.04"),
        append_row_to="${{outputs.scores}}",
    ),
)


@pipeline(default_compute="cpu-cluster")
def scoring(files):
    step = score(files=files)
    return {"result": step.outputs.scores}


job = scoring(files=Input(type=AssetTypes.URI_FOLDER, path="./data"))
job = ml_client.jobs.create_or_update(job, experiment_name="scoring")
print(job.studio_url)
ml_client.jobs.stream(job.name)
ml_client.jobs.download(job.name, all=True, download_path="out-dsl")

assert ml_client.jobs.get(job.name).status == "Completed"
assert job.name in [each.name for each in ml_client.jobs.list()]
(rows,) = [path for path in Path("out-dsl/named-outputs/result").rglob("*") if path.is_file()]
assert sorted(rows.read_text().split()) == [f"part{n}.txt,{n}" for n in range(1, 5)], rows.read_text()
assert list(Path("out-dsl/artifacts").rglob("job_result.txt"))
assert ml_client.jobs.show_services(job.name)["Studio"].endpoint in job.studio_url
ml_client.jobs.archive(job.name)
assert job.name not in [each.name for each in ml_client.jobs.list()]
ml_client.jobs.restore(job.name)
assert job.name in [each.name for each in ml_client.jobs.list()]
