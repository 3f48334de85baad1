"""Configurations of `ParallelRunStep`, version 1 of Azure ML's client, are jobs (reference §1.1)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance.documents import CONFIG, DELETE, spec_of

STEP = "jobs.score"


def test_a_v1_configuration_is_a_job(folder: Path) -> None:
    spec = spec_of(CONFIG, folder, **{
        "side_inputs": {"model": "./src"}, "arguments": ["--model", "${{inputs.model}}", "--n", 20, "--blank", " "],
        "name": "score-all", "output": "./out", "parallel_run_config.allowed_failed_count": 3,
        "parallel_run_config.run_max_try": 5, "parallel_run_config.process_count_per_node": 6,
    })  # fmt: skip
    assert (spec.name, spec.output, spec.output_action) == ("score-all", f"{folder}/out", "append_row")
    assert (spec.instance_count, spec.max_concurrency_per_instance, spec.run_max_try) == (2, 6, 5)
    assert (spec.mini_batch_error_threshold, spec.error_threshold, spec.size.files) == (3, 10, 10)
    assert spec.argv() == ["--model", f"{folder}/src", "--n", "20", "--blank", " "]
    assert spec.input_data == ("input_0",)


def test_a_v1_configuration_without_a_folder_has_that_of_its_script(folder: Path) -> None:
    changes = {"parallel_run_config.source_directory": DELETE, "parallel_run_config.entry_script": "src/score.py"}
    spec = spec_of(CONFIG, folder, **changes)
    assert (spec.code, spec.entry_script) == (f"{folder}/src", "score.py")


@pytest.mark.parametrize("given", ["my-env", {"name": "e", "python": {"condaDependencies": {"dependencies": ["six"]}}}])
def test_a_v1_environment_is_a_name_or_has_conda_dependencies(folder: Path, given: object) -> None:
    spec = spec_of(CONFIG, folder, **{"parallel_run_config.environment": given})
    assert spec.environment.requirements == ([] if isinstance(given, str) else ["six"])
