"""Components from files in a pipeline that is written in Python; and one whose script fails."""

from pathlib import Path

from azure.ai.ml import Input, MLClient, command, load_component
from azure.ai.ml.dsl import pipeline
from azure.ai.ml.exceptions import JobException
from azure.identity import DefaultAzureCredential

ml_client = MLClient.from_config(credential=DefaultAzureCredential())
score = load_component("score_component.yml")
report = command(
    name="report",
    inputs={"scores": Input(type="uri_file")},
    outputs={"report": {"type": "uri_folder"}},
    code="./src",
    command="python report.py --scores ${{inputs.scores}} --report ${{outputs.report}}",
    environment="AzureML-sklearn-1.0-ubuntu20.04-py38-cpu@latest",
)


@pipeline(description="scores words")
def words(files):
    scored = score(files=files, least=2)
    scored.mini_batch_size = "2"
    made = report(scores=scored.outputs.scores)
    return {"report": made.outputs.report}


job = words(files=Input(type="uri_folder", path="./data"))
job.settings.default_compute = "cpu-cluster"
job = ml_client.jobs.create_or_update(job)
ml_client.jobs.stream(job.name)
ml_client.jobs.download(job.name, output_name="report", download_path="out-components")
assert Path("out-components/named-outputs/report/report.txt").read_text() == "4 files\n"

score.task.entry_script = "failing.py"
job = words(files=Input(type="uri_folder", path="./data"))
job.settings.default_compute = "cpu-cluster"
job = ml_client.jobs.create_or_update(job)
try:
    ml_client.jobs.stream(job.name)
except JobException as error:
    assert "the model does not fit" in str(error), str(error)
else:
    raise AssertionError("a job whose script fails")
assert ml_client.jobs.get(job.name).status == "Failed"
