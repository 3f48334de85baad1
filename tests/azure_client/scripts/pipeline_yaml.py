"""A pipeline of command and parallel steps from a YAML file, with its children."""

from pathlib import Path

from azure.ai.ml import MLClient, load_job
from azure.identity import DefaultAzureCredential

ml_client = MLClient.from_config(credential=DefaultAzureCredential())

job = ml_client.jobs.create_or_update(load_job("pipeline.yml"))
ml_client.jobs.stream(job.name)

assert ml_client.jobs.get(job.name).status == "Completed"
children = {child.display_name: child for child in ml_client.jobs.list(parent_job_name=job.name)}
assert set(children) == {"prepare", "score", "report"}, children
assert {child.status for child in children.values()} == {"Completed"}
ml_client.jobs.download(job.name, output_name="report", download_path="out-yaml")
assert Path("out-yaml/named-outputs/report/report.txt").read_text() == "3 files\n"
ml_client.jobs.download(children["score"].name, output_name="scores", download_path="out-child")
(rows,) = [path for path in Path("out-child/named-outputs/scores").rglob("*") if path.is_file()]
assert sorted(rows.read_text().split()) == [f"part{n}.txt,{n}" for n in range(2, 5)]
