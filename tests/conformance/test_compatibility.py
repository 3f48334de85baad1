"""docs/compatibility.md says something about every field and option that is read, and about nothing else.

What it says of expressions and environments is so: its rows have examples here.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pydantic import BaseModel

from parallelrun_core.azure.batch_deployment import DeploymentDocument
from parallelrun_core.azure.options import OPTIONS
from parallelrun_core.azure.pipelines.conditions import IfElse
from parallelrun_core.azure.v1 import Config, StepDocument
from parallelrun_core.azure.v2_command import CommandComponent, CommandLimits, CommandStep, Distribution
from parallelrun_core.azure.v2_models import (
    GivenInput,
    GivenOutput,
    Identity,
    Resources,
    Task,
    V2Component,
    V2Pipeline,
    V2RetrySettings,
    V2Settings,
    V2Step,
)
from parallelrun_core.endpoints.document import EndpointDocument
from parallelrun_core.endpoints.invoking import Invocation
from parallelrun_core.schedules.document import ScheduleDocument
from parallelrun_core.schedules.triggers.cron import CronTrigger
from parallelrun_core.schedules.triggers.recurrence import RecurrencePattern, RecurrenceTrigger
from parallelrun_core.spec.expressions import UNIQUE_NAME
from tests.conformance.documents import COMPONENT, PIPELINE, changed, make_folder, problems, read

PAGE = (Path(__file__).parents[2] / "docs" / "compatibility.md").read_text(encoding="utf-8")
WORDS = {"works", "differs", "refused", "noted", "no effect", "ours"}


def names_of(*models: type[BaseModel]) -> set[str]:
    return {field.alias or name for model in models for name, field in model.model_fields.items()}


EXPECTED = {
    "Pipeline": names_of(V2Pipeline),
    "Settings": names_of(V2Settings),
    "Step and component": names_of(V2Step, V2Component),
    "Command jobs and steps": names_of(CommandStep, CommandComponent),
    "limits": names_of(CommandLimits),
    "distribution": names_of(Distribution),
    "Conditions": names_of(IfElse),
    "resources": names_of(Resources),
    "retry_settings": names_of(V2RetrySettings),
    "task": names_of(Task),
    "identity": names_of(Identity),
    "Inputs": names_of(GivenInput),
    "Outputs": names_of(GivenOutput),
    "Program arguments of the engine": {f"--{name}" for name in OPTIONS},
    "Batch deployments": names_of(DeploymentDocument),
    "Batch endpoints": names_of(EndpointDocument),
    "Invocations": names_of(Invocation),
    "Schedules": names_of(ScheduleDocument),
    "Triggers": names_of(CronTrigger, RecurrenceTrigger),
    "Patterns of recurrences": names_of(RecurrencePattern),
    "ParallelRunConfig": names_of(Config),
    "ParallelRunStep": names_of(StepDocument),
}


def rows_of(section: str) -> list[tuple[str, str]]:
    text = PAGE.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    return re.findall(r"^\| `([^`|]+)` \| ([^|]*?) \| [^|]*\|$", text, re.MULTILINE)


@pytest.mark.parametrize("section", EXPECTED)
def test_every_field_has_its_row_and_no_other(section: str) -> None:
    rows = rows_of(section)
    assert len(rows) == len({name for name, _ in rows})
    assert {name for name, _ in rows} == EXPECTED[section]
    assert {word for _, word in rows} <= WORDS


# The two tables that are not about fields: each of their rows has examples, which do what its word says


def cells_of(section: str) -> dict[str, str]:
    text = PAGE.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (.+?) \| ([^|]*?) \| [^|]*\|$", text, re.MULTILINE)
    return {name: word for name, word in rows if name not in ("expression", "form") and set(name) != {"-"}}


STEP = "jobs.score"
ARGUMENTS = f"{STEP}.task.program_arguments"
ENVIRONMENT = f"{STEP}.task.environment"
OF_OUTPUT = f"{STEP}.outputs.scores"


class Example(NamedTuple):
    """A change to a right document, and what becomes of it: a part of the job, or the pointer of what is said."""

    changes: dict[str, object]
    told_at: str = ""
    look: Callable[[Any], object] = lambda spec: None
    found: object = None
    document: dict[str, Any] = PIPELINE


GIVEN = {"component": {**COMPONENT, "mini_batch_size": "${{inputs.limit}}"}, "inputs": {
    "files": "${{parent.inputs.raw}}", "limit": 7}}  # fmt: skip

FIRST = {"code": "./src", "entry_script": "score.py", "inputs": "./data", "outputs": {"y": {}}}

EXAMPLES: dict[str, dict[str, list[Example]]] = {
    "Expressions": {
        "`${{inputs.x}}`": [
            Example({ARGUMENTS: "--m=${{inputs.model}}/w"}, look=lambda spec: spec.argv(), found=["--m=DIR/data/w"]),
            Example({f"{STEP}.input_data": "${{inputs.model}}"}, look=lambda spec: spec.input_data, found=("model",)),
            Example({STEP: GIVEN}, look=lambda spec: spec.mini_batch_size, found=7),
        ],
        "`${{outputs.y}}`": [
            Example(
                {ARGUMENTS: "${{outputs.scores}}"}, look=lambda spec: spec.argv({"all_scores": "/o"}), found=["/o"]
            ),
            Example({}, look=lambda spec: spec.append_row_to, found="all_scores"),
        ],
        "`${{parent.inputs.x}}`": [
            Example({}, look=lambda spec: spec.data_paths(), found=["DIR/data"]),
            Example(
                {f"{STEP}.inputs.files": {"path": "${{parent.inputs.raw}}", "mode": "direct"}},
                look=lambda spec: spec.data_paths(),
                found=["DIR/data"],
            ),
            Example(
                {f"{STEP}.retry_settings": {"timeout": "${{parent.inputs.count}}"}},
                look=lambda spec: spec.run_invocation_timeout,
                found=4,
            ),
        ],
        "`${{parent.outputs.y}}`": [Example({}, look=lambda spec: spec.outputs["all_scores"].type, found="uri_file")],
        "`${{parent.jobs.s.outputs.y}}`": [
            Example(
                {"jobs.s": FIRST, f"{STEP}.inputs.files": "${{parent.jobs.s.outputs.y}}"},
                look=lambda spec: spec.steps["score"].needs(),
                found={"s"},
            )
        ],
        "`${{jobs.s.outputs.y}}`": [
            Example(
                {"jobs.s": FIRST, f"{STEP}.inputs.files": {"path": "${{jobs.S.outputs.Y}}"}},
                look=lambda spec: spec.steps["score"].inputs_from["files"].output,
                found="y",
            )
        ],
        "`$[[ … ]]`": [
            Example({ARGUMENTS: "--a $[[--b ${{inputs.no}}]]"}, look=lambda spec: spec.argv(), found=["--a"]),
            Example(
                {ARGUMENTS: "$[[--b ${{inputs.model}}]]"}, look=lambda spec: spec.argv(), found=["--b", "DIR/data"]
            ),
        ],
        "`${{name}}`": [
            Example(
                {OF_OUTPUT: {"path": "./${{name}}"}},
                look=lambda spec: spec.outputs["scores"].path,
                found=f"DIR/{UNIQUE_NAME}",
            )
        ],
        "`${{output_name}}`": [
            Example(
                {OF_OUTPUT: {"path": "./${{output_name}}"}},
                look=lambda spec: spec.outputs["scores"].path,
                found="DIR/scores",
            )
        ],
        "`${{default_datastore}}`": [
            Example(
                {OF_OUTPUT: {"path": "azureml://datastores/${{default_datastore}}/paths/a"}},
                told_at="/jobs/score/outputs/scores/path",
            )
        ],
    },
    "Environment": {
        "`azureml:NAME…`, a registry": [
            Example({ENVIRONMENT: name}, told_at="/jobs/score/task/environment")
            for name in ("azureml:e@latest", "azureml:e:3", "azureml://registries/r/environments/e/versions/1")
        ],
        "`image`": [Example({ENVIRONMENT: {"image": "i"}}, told_at="/jobs/score/task/environment/image")],
        "`build`": [
            Example(
                {ENVIRONMENT: {"build": {"path": "./docker"}}},
                told_at="/jobs/score/task/environment/build",
                look=lambda spec: spec.environment.build.dockerfile_path,
                found="Dockerfile",
            )
        ],
        "`conda_file`": [
            Example({ENVIRONMENT: given}, look=lambda spec: spec.environment.requirements, found=["six"])
            for given in (
                {"conda_file": "conda.yml"},
                {"conda_file": {"name": "e", "dependencies": ["six"]}},
                {"conda_file": {"dependencies": [{"pip": ["six"]}]}},
            )
        ],
        "`environment_variables`": [
            Example(
                {ENVIRONMENT: {"conda_file": "conda.yml", "environment_variables": {"A": "1"}}},
                look=lambda spec: spec.environment_variables,
                found={"A": "1"},
            )
        ],
        "requirements for pip, here and in conda files": [
            Example(
                {ENVIRONMENT: {"pip": ["--pre", "Six>=1  # why"]}},
                look=lambda spec: (spec.environment.requirements, spec.environment.prereleases),
                found=(["six>=1"], True),
            )
        ],
        "a YAML file, `file:` and a path": [
            Example({ENVIRONMENT: name}, look=lambda spec: spec.environment.requirements, found=["six"])
            for name in ("env.yml", "file:env.yml", "file:./env.yml")
        ],
        "a version of Python": [
            Example(
                {ENVIRONMENT: {"conda_file": {"dependencies": [f"python={version}", "six"]}}},
                told_at="/jobs/score/task/environment/conda_file",
                look=lambda spec: spec.environment.python,
                found="" if version == "3.6" else version,
            )
            for version in ("3.6", "3.9")
        ],
    },
}


@pytest.mark.parametrize("section", EXAMPLES)
def test_every_row_has_examples_and_every_example_a_row(section: str) -> None:
    assert cells_of(section).keys() == EXAMPLES[section].keys()


@pytest.mark.parametrize(
    "section, row, example",
    [
        pytest.param(section, row, example, id=f"{row} {number}")
        for section, rows in EXAMPLES.items()
        for row, examples in rows.items()
        for number, example in enumerate(examples)
    ],
)
def test_what_a_row_says_is_so(tmp_path: Path, section: str, row: str, example: Example) -> None:
    folder = make_folder(tmp_path)
    (folder / "conda.yml").write_text("dependencies: [six]")
    (folder / "env.yml").write_text("{name: e, conda_file: conda.yml}")
    document, word = changed(example.document, **example.changes), cells_of(section)[row]
    if word == "refused":
        assert example.told_at in problems(document, folder)
        return
    reading = read(document, folder)
    found = example.look(reading.spec)
    assert found == with_folder(example.found, folder)
    notes = {note.pointer for note in reading.notes}
    if word == "noted" or example.told_at:
        assert example.told_at in notes
    else:
        assert word in {"works", "differs"}
        assert not [
            pointer for pointer in notes if pointer.startswith(("/jobs/score/task/environment/", "/jobs/score/outputs"))
        ]


def with_folder(value: object, folder: Path) -> object:
    """What is expected, with the folder of the document in it."""
    match value:
        case str():
            return value.replace("DIR", str(folder))
        case list():
            return [with_folder(each, folder) for each in value]
    return value
