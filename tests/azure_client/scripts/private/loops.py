"""Loops of a pipeline, as `azure-ai-ml` builds them: for each item, and while an output of the body is true."""

import json
from pathlib import Path

from azure.ai.ml import Input, MLClient, Output, command
from azure.ai.ml.constants import AssetTypes
from azure.ai.ml.dsl import pipeline
from azure.ai.ml.dsl._do_while import do_while
from azure.ai.ml.dsl._parallel_for import parallel_for
from azure.identity import DefaultAzureCredential

ml_client = MLClient.from_config(credential=DefaultAzureCredential())
ENVIRONMENT = "azureml:AzureML-sklearn-1.0-ubuntu20.04-py38-cpu@latest"

take = command(
    name="take",
    command="cp ${{inputs.files}}/*${{inputs.number}}.txt ${{outputs.taken}}/",
    inputs={"files": Input(type=AssetTypes.URI_FOLDER), "number": Input(type="integer")},
    outputs={"taken": Output(type=AssetTypes.URI_FOLDER)},
    environment=ENVIRONMENT,
).component
gather = command(
    name="gather",
    command="cat ${{inputs.all}}/*/*.txt > ${{outputs.gathered}}/all.txt",
    inputs={"all": Input(type=AssetTypes.MLTABLE)},
    outputs={"gathered": Output(type=AssetTypes.URI_FOLDER)},
    environment=ENVIRONMENT,
).component
grow = command(
    name="grow",
    command=(
        "cd ${{outputs.after}} && cp -R ${{inputs.before}}/. . && touch more$(ls | wc -l) && "
        "if [ $(ls | wc -l) -lt 6 ]; then echo true; else echo false; fi > ${{outputs.again}}"
    ),
    inputs={"before": Input(type=AssetTypes.URI_FOLDER)},
    outputs={"after": Output(type=AssetTypes.URI_FOLDER), "again": Output(type="boolean", is_control=True)},
    environment=ENVIRONMENT,
).component


@pipeline(default_compute="cpu-cluster")
def loops(files: Input(type=AssetTypes.URI_FOLDER)):
    taking = take(files=files)
    each = parallel_for(body=taking, items=[{"number": 1}, {"number": 3}], max_concurrency=1)
    gathering = gather(all=each.outputs.taken)
    growing = grow(before=files)
    do_while(
        body=growing,
        mapping={growing.outputs.after: growing.inputs.before},
        condition=growing.outputs.again,
        max_iteration_count=5,
    )
    return {"gathered": gathering.outputs.gathered, "grown": growing.outputs.after}


job = loops(files=Input(type=AssetTypes.URI_FOLDER, path="./data"))
job = ml_client.jobs.create_or_update(job, experiment_name="loops")
ml_client.jobs.stream(job.name)
assert ml_client.jobs.get(job.name).status == "Completed"
ml_client.jobs.download(job.name, all=True, download_path="out-loops")

outputs = Path("out-loops/named-outputs")
(everything,) = list((outputs / "gathered").rglob("all.txt"))
parts = [Path(f"data/part{number}.txt").read_text() for number in (1, 3)]
assert everything.read_text() == "".join(parts), everything.read_text()
grown = sorted(path.name for path in (outputs / "grown").rglob("*") if path.is_file())
assert grown == ["more4", "more5", *(f"part{number}.txt" for number in range(1, 5))], grown
(loop,) = [each for each in ml_client.jobs.list(parent_job_name=job.name) if "each" in json.dumps(each.display_name)]
assert len(list(ml_client.jobs.list(parent_job_name=loop.name))) == 2
