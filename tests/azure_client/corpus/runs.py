"""Runs the published documents with parallel steps to their ends, submitted by the client, unedited.

What they take from package indexes and from the network is stood in by `stand_ins`, the Python of the nodes by the site
file.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import yaml

from parallelrun.client import Client
from parallelrun_core.assets.site import VARIABLE
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.pipelines.standing import standings
from tests.azure_client.corpus.cases import HERE, Case, published, site_of
from tests.azure_client.corpus.play import by_client, job_id_of
from tests.azure_client.servers import connected, embedded

WITHIN_S: Final = 240.0
_SALES: Final = 3
"""Models of the sales that stand in for Microsoft's: one for each store and brand."""
_DIGITS: Final = sorted(f"{number}.png: 9" for number in range(1000))


@dataclass(frozen=True)
class Ended:
    """How a published document has ended that was run."""

    name: str
    trouble: str


def run(python: Path, home: Path) -> list[Ended]:
    """Run the documents.

    Args:
        python: of the environment of the client.
        home: an empty folder.
    """
    home.mkdir()
    cases = [each for each in published(home / "published") if each.name in _CHECKS]
    site = home / "site.yml"
    site.write_text(yaml.safe_dump(site_of(home / "published")))
    variables = {VARIABLE: str(site), "PYTHONPATH": str(HERE / "stand_ins")}
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        with (
            embedded(home, nodes=2) as server,
            connected(server) as environment,
            Client(server.url, server.token) as user,
        ):
            answers = by_client(python, cases, home / "client", environment)
            return [Ended(case.name, _trouble(case, answers[case.name].job, user, server.root)) for case in cases]
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            os.environ.update({name: value} if value is not None else {})


def _trouble(case: Case, name: str, user: Client, root: Path) -> str:
    if not name:
        return "it was not taken"
    job = user.jobs.wait(job_id_of(root, name), timeout_s=WITHIN_S, raise_on_failure=False)
    if job.state != "completed":
        return f"it has ended as {job.state}: {job.failure}"
    return _CHECKS[case.name](case, _outputs(JobFolder(root, job.id)))


def _outputs(folder: JobFolder) -> Mapping[str, Path]:
    """The paths of the outputs of a job, or of all steps of a pipeline, by name."""
    record = folder.record()
    if not record.is_pipeline:
        return {name: Path(path) for name, path in folder.output_paths(record.job_spec()).items()}
    steps = standings(folder, record.pipeline_spec()).values()
    return {name: path for step in steps for name, path in _outputs(JobFolder(folder.root, step.job_id)).items()}


def _sales(_: Case, outputs: Mapping[str, Path]) -> str:
    models = sorted(
        str(path.parent.relative_to(outputs["model_folder"])) for path in outputs["model_folder"].rglob("model.txt")
    )
    return "" if len(models) == _SALES else f"the models are {models}"


def _flowers(case: Case, outputs: Mapping[str, Path]) -> str:
    with (case.file.parent / "neural-iris-mltable" / "iris.csv").open() as file:
        expected = sorted(tuple(float(value) for value in list(row)[:4]) for row in list(csv.reader(file))[1:] if row)
    lines = outputs["job_output_file"].read_text().splitlines()
    rows = sorted(tuple(float(value) for value in line.split()[:4]) for line in lines)
    same = rows == expected and all(line.split()[4] == "0" for line in lines)
    return "" if same else f"there are {len(rows)} rows instead of {len(expected)}, as {lines[:3]}"


def _digits(_: Case, outputs: Mapping[str, Path]) -> str:
    lines = sorted(outputs["job_output_file"].read_text().splitlines())
    return "" if lines == _DIGITS else f"there are {len(lines)} rows, as {lines[:3]}"


_CHECKS: Final[Mapping[str, Callable[[Case, Mapping[str, Path]], str]]] = {
    "parallel/1a_oj_sales_prediction/pipeline.yml": _sales,
    "parallel/2a_iris_batch_prediction/pipeline.yml": _flowers,
    "parallel/3a_mnist_batch_identification/pipeline.yml": _digits,
    "pipelines/iris-batch-prediction-using-parallel/pipeline.yml": _flowers,
    "pipelines/mnist-batch-identification-using-parallel/pipeline.yml": _digits,
}
