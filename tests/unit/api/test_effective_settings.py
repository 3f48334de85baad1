"""The settings of a job by group, as the page shows them."""

from __future__ import annotations

import pytest

from parallelrun_api.views.settings import effective_settings
from parallelrun_core.folder.records import JobRecord
from parallelrun_core.spec import JobSpec, PipelineSpec

WITHOUT_EFFECT = {"copy_logs_to_parent", "metrics_name_prefix", "push_metrics_to_parent"}
JOB = {"entry_script": "main.py", "inputs": {"data": {"path": "/data"}}}


@pytest.mark.parametrize(
    "spec",
    [
        JobSpec.parse(JOB),
        PipelineSpec.parse({"type": "pipeline", "steps": {"first": {"type": "parallel", "job": JOB}}}),
    ],
    ids=["job", "pipeline"],
)
def test_settings_that_have_an_effect_are_each_in_a_group(spec: JobSpec | PipelineSpec) -> None:
    document = spec.model_dump(mode="json")
    record = JobRecord(job_id="job_01kav3x8n2h7q5m9c4t6", submitted=1.0, code="", spec=document)

    items = effective_settings(record).items

    assert {item.name for item in items} == set(type(spec).model_fields)
    assert {item.name for item in items if item.group == "other"} <= WITHOUT_EFFECT
