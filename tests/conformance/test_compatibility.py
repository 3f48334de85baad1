"""docs/compatibility.md says something about every field and option that is read, and about nothing else."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pydantic import BaseModel

from parallelrun_core.azure.options import OPTIONS
from parallelrun_core.azure.v1 import Config, StepDocument
from parallelrun_core.azure.v2_models import (
    Component,
    GivenInput,
    GivenOutput,
    Identity,
    Pipeline,
    Resources,
    RetrySettings,
    Settings,
    Step,
    Task,
)

PAGE = (Path(__file__).parents[2] / "docs" / "compatibility.md").read_text(encoding="utf-8")
WORDS = {"works", "differs", "refused", "noted", "no effect", "ours"}


def names_of(*models: type[BaseModel]) -> set[str]:
    return {field.alias or name for model in models for name, field in model.model_fields.items()}


EXPECTED = {
    "Pipeline": names_of(Pipeline),
    "Settings": names_of(Settings),
    "Step and component": names_of(Step, Component),
    "resources": names_of(Resources),
    "retry_settings": names_of(RetrySettings),
    "task": names_of(Task),
    "identity": names_of(Identity),
    "Inputs": names_of(GivenInput),
    "Outputs": names_of(GivenOutput),
    "Program arguments of the engine": {f"--{name}" for name in OPTIONS},
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
