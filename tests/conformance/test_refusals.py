"""Every bad value of the reference's §1.6 is refused with the place of the field, the reason and what to do.

Some of these the client of Azure refuses, others it lets through for its service to decide; here there is no service
behind the client.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from parallelrun_core.spec import set_field
from tests.conformance.documents import (
    COMPONENT,
    CONFIG,
    DELETE,
    PIPELINE,
    SCRIPT,
    changed,
    problems,
    read,
)

STEP = "/jobs/score"

REFUSED_BY_THE_CLIENT: list[tuple[str, Any, str, str]] = [
    *(("jobs.score.mini_batch_size", value, f"{STEP}/mini_batch_size", "string") for value in (10, 1.5, None)),
    *(
        ("jobs.score.mini_batch_size", value, f"{STEP}/mini_batch_size", "whole number")
        for value in ("1.5kb", "10 kb", "abc", "-1", "1tb", "1kbkb")
    ),
    ("jobs.score.partition_keys", "store", f"{STEP}/partition_keys", "list"),
    ("jobs.score.partition_keys", [1, 2], f"{STEP}/partition_keys/0", "string"),
    ("jobs.score.task.type", DELETE, f"{STEP}/task/type", "required"),
    ("jobs.score.task.type", "command", f"{STEP}/task/type", "run_function"),
    ("jobs.score.task.environment", DELETE, f"{STEP}/task/environment", "required"),
    ("jobs.score.task.code", "./nowhere", f"{STEP}/task/code", "no folder"),
    ("jobs.score.task.program_arguments", ["--a", "1"], f"{STEP}/task/program_arguments", "one string"),
    ("jobs.score.no_such_field", 1, f"{STEP}/no_such_field", "unknown field"),
    ("jobs.score.append_row_to", "${{outputs.scores}}", f"{STEP}/append_row_to", "below task"),
    ("jobs.score.resources", {"instance_counts": 1}, f"{STEP}/resources/instance_counts", "instance_count"),
    ("jobs.score.retry_settings", {"max_retries": "two"}, f"{STEP}/retry_settings/max_retries", "whole number"),
    *(
        ("jobs.score.logging_level", value, f"{STEP}/logging_level", "in capitals")
        for value in ("info", "WARN", "ERROR")
    ),
    ("jobs.score.environment_variables", {"A": 1}, f"{STEP}/environment_variables/A", "string"),
    ("jobs.score.inputs.model.mode", "eval_mount", f"{STEP}/inputs/model/mode", "mltable"),
    ("jobs.score.inputs.model.mode", "rw_mount", f"{STEP}/inputs/model/mode", "ro_mount"),
    ("jobs.score.inputs.model.type", "folder", f"{STEP}/inputs/model/type", "uri_folder"),
    ("jobs.score.outputs", {"scores": {"mode": "ro_mount"}}, f"{STEP}/outputs/scores/mode", "rw_mount"),
    ("jobs.score.inputs.files", "${{parent.inputs.no}}", f"{STEP}/inputs/files", "no input 'no'"),
    ("jobs.score.inputs.files", "${{parent.jobs.no.outputs.x}}", f"{STEP}/inputs/files", "no other step"),
    ("jobs.score.inputs.files", "${{jobs.no.outputs.x}}", f"{STEP}/inputs/files", "no other step"),
    ("jobs.score.task.environment", {"conda_file": "no.yml"}, f"{STEP}/task/environment/conda_file", "No such file"),
    ("jobs.score.task.environment", "curated", f"{STEP}/task/environment", "azureml:curated@latest"),
    ("jobs.score.task.environment", {"name": "x"}, f"{STEP}/task/environment", "neither"),
    ("settings.default_compute", DELETE, "/settings/default_compute", "no compute"),
]  # fmt: skip

LET_THROUGH_BY_THE_CLIENT: list[tuple[str, Any, str, str]] = [
    ("jobs.score.input_data", DELETE, f"{STEP}/input_data", "required"),
    ("jobs.score.input_data", "${{inputs.no}}", f"{STEP}/input_data", "not one of the given inputs"),
    ("jobs.score.input_data", "./data", f"{STEP}/input_data", "not an expression"),
    ("jobs.score.task", DELETE, f"{STEP}/task", "required"),
    ("jobs.score.task.type", "model", f"{STEP}/task/type", "run_function"),
    ("jobs.score.task.entry_script", DELETE, f"{STEP}/task/entry_script", "required"),
    ("jobs.score.task.entry_script", "no.py", f"{STEP}/task/entry_script", "no file"),
    ("jobs.score.task.code", DELETE, f"{STEP}/task/code", "required"),
    ("jobs.score.task.append_row_to", "scores.txt", f"{STEP}/task/append_row_to", "outputs.NAME"),
    ("jobs.score.task.append_row_to", "${{outputs.no}}", f"{STEP}/task/append_row_to", "not one of the outputs"),
    ("jobs.score.task.append_row_to", "${{outputs.scores}}/x", f"{STEP}/task/append_row_to", "and nothing else"),
    ("jobs.score.retry_settings", {"max_retries": -1}, f"{STEP}/retry_settings/max_retries", "or equal to 0"),
    *(
        ("jobs.score.retry_settings", {"timeout": value}, f"{STEP}/retry_settings/timeout", why)
        for value, why in ((0, "greater than 0"), (-5, "greater than 0"), (300_000, "less than"), (1.5, "whole number"))
    ),
    *(
        ("jobs.score.max_concurrency_per_instance", value, f"{STEP}/max_concurrency_per_instance", why)
        for value, why in ((0, "or equal to 1"), (-1, "or equal to 1"), ("two", "whole number"))
    ),
    *(
        (f"jobs.score.{name}", value, f"{STEP}/{name}", why)
        for name in ("error_threshold", "mini_batch_error_threshold")
        for value, why in ((-2, "or equal to -1"), (1.5, "whole number"))
    ),
    ("inputs.raw.path", "./nowhere", "/inputs/raw/path", "no file or folder"),
    ("settings.on_init", "nothing", "/settings/on_init", "there is no step 'nothing'"),
    ("inputs.count", {"type": "integer", "default": 4, "max": 3}, "/inputs/count", "greater than 3"),
    ("jobs.score.inputs.model.path", "./nowhere", f"{STEP}/inputs/model/path", "no file or folder"),
    ("jobs.score.inputs.files", {"path": "${{parent.inputs.no}}"}, f"{STEP}/inputs/files/path", "no input 'no'"),
    ("mini_batch_size", "5", "/mini_batch_size", "it is a field of the step: jobs.score.mini_batch_size"),
    ("timeout", 5, "/timeout", "it is a field of the step: jobs.score.retry_settings.timeout"),
    ("jobs.scores.mini_batch_size", "5", "/jobs/scores", "the step is called 'score'"),
    ("settngs", {}, "/settngs", "did you mean 'settings'?"),
    ("jobs.score.max_concurrency_per_instance", "${{parent.inputs.word}}", f"{STEP}/max_concurrency_per_instance",
     "whole number"),
    ("jobs.score.mini_batch_size", "${{parent.inputs.word}}", f"{STEP}/mini_batch_size", "whole number"),
    ("jobs.score.resources", {"instance_count": "${{parent.inputs.raw}}"}, f"{STEP}/resources/instance_count",
     "not bound to a value"),
]  # fmt: skip

NOT_HERE: list[tuple[str, Any, str, str]] = [
    ("inputs.raw.path", "azureml:images:1", "/inputs/raw/path", "copy the data"),
    ("inputs.raw.path", "azureml://datastores/d/p", "/inputs/raw/path", "azureml://datastores/NAME/paths/PATH"),
    ("inputs.raw.path", "hdfs://host/p", "/inputs/raw/path", "not supported yet"),
    ("jobs.score.outputs.scores", {"path": "ftp://h/p"}, f"{STEP}/outputs/scores/path", "not supported yet"),
    ("jobs.score.task.code", "s3://bucket/code", f"{STEP}/task/code", "can't be read there"),
    ("jobs.score.task.code", "azureml:/subscriptions/s/codes/c/versions/1", f"{STEP}/task/code", "can't be read there"),
    ("jobs.score.task.code", "azureml:code:1", f"{STEP}/task/code", "can't be read there"),
    ("jobs.score.component", "azureml:score:1", f"{STEP}/component", "save its YAML"),
    ("jobs.score.component", "azureml://registries/r/components/c/versions/1", f"{STEP}/component", "save its YAML"),
    ("jobs.two", {"type": "spark"}, "/jobs/two/type", "'spark'"),
    ("jobs.score.type", "sweep", f"{STEP}/type", "'sweep'"),
    ("jobs.score.task.program_arguments", "--amlbi_async_mode yes", f"{STEP}/task/program_arguments", "True or False"),
    *(
        ("jobs.score.task.program_arguments", value, f"{STEP}/task/program_arguments", message)
        for value, message in (
            ("--amlbi_pf_enabled true", "Prompt Flow"), ("--amlbi_pf_run_mode bulk", "Prompt Flow"),
            ("--amlbi_new_thing 1", "--amlbi_mini_batch_rows"), ("--amlbi_file_format csv", "must be jsonl"),
            ("--amlbi_mini_batch_rows 0", "whole number from 1"), ("--amlbi_mini_batch_rows", "must have a value"),
            ("--amlbi_dataframe_mixed_types yes", "True or False"),
            ("--amlbi_file_format jsonl", "add --amlbi_mini_batch_rows N"),
        )
    ),
    ("jobs.score.task.program_arguments", "--rate_limits a,,b", f"{STEP}/task/program_arguments", "commas"),
    ("jobs.score.task.program_arguments", "--on_failure halve", f"{STEP}/task/program_arguments", "must be isolate or"),
    ("jobs.score.string_dtype", "object", f"{STEP}/string_dtype", "--string_dtype VALUE"),
    ("jobs.score.mini_batches_in_flight", 8, f"{STEP}/mini_batches_in_flight", "--mini_batches_in_flight VALUE"),
    ("jobs.score.budget", {"usd": 5}, f"{STEP}/budget", "--budget_usd VALUE"),
    ("jobs.score.task.program_arguments", "--budget_usd much", f"{STEP}/task/program_arguments", "US dollars"),
    ("jobs.score.in_flight", "threads", f"{STEP}/in_flight", "among the program_arguments"),
    ("jobs.score.task.program_arguments", "--nice 50", f"{STEP}/task/program_arguments", "from -20 to 19"),
    ("jobs.score.task.program_arguments", "--error_threshold", f"{STEP}/task/program_arguments", "must have a value"),
    ("jobs.score.task.program_arguments", "--x ${{parent.inputs.raw}}", f"{STEP}/task/program_arguments", "neither"),
    ("jobs.score.task.environment", {"conda_file": {"dependencies": ["cudatoolkit"]}},
     f"{STEP}/task/environment/conda_file", "cudatoolkit"),
]  # fmt: skip


@pytest.mark.parametrize("path, value, pointer, why", REFUSED_BY_THE_CLIENT)
def test_what_the_client_of_azure_refuses_is_refused(
    folder: Path, path: str, value: object, pointer: str, why: str
) -> None:
    found = problems(changed(PIPELINE, **{path: value}), folder)
    assert pointer in found, found
    assert why in found[pointer]


@pytest.mark.parametrize("path, value, pointer, why", LET_THROUGH_BY_THE_CLIENT)
def test_what_the_client_of_azure_lets_through_is_checked(
    folder: Path, path: str, value: object, pointer: str, why: str
) -> None:
    found = problems(changed(PIPELINE, **{path: value}), folder)
    assert pointer in found, found
    assert why in found[pointer]


@pytest.mark.parametrize(
    "path, value, pointer, why",
    [
        ("jobs.score.mini_batch_size", "0", f"{STEP}/mini_batch_size", "not set"),
        ("jobs.score.mini_batch_size", "0kb", f"{STEP}/mini_batch_size", "not set"),
        ("jobs.score.max_concurrency_per_instance", "2", f"{STEP}/max_concurrency_per_instance", "as a number"),
        ("jobs.score.resources", {"instance_count": -1}, f"{STEP}/resources/instance_count", "not set"),
        ("jobs.score.task.model", "azureml:m:1", f"{STEP}/task/model", "make it an input"),
        ("jobs.score.task.no_such_field", 1, f"{STEP}/task/no_such_field", "unknown field"),
        ("jobs.score.retry_settings", {"max_retrys": 1}, f"{STEP}/retry_settings/max_retrys", "'max_retries'"),
        ("settings.default_datestore", "azureml:x", "/settings/default_datestore", "'default_datastore'"),
        (
            "jobs.score",
            {"component": {**COMPONENT, "output_data": 1}, "inputs": {"files": "${{parent.inputs.raw}}", "limits": 1}},
            f"{STEP}/inputs/limits",
            "'limit'",
        ),
        (
            "jobs.score",
            {"component": {**COMPONENT, "output_data": 1}, "inputs": {"files": "${{parent.inputs.raw}}"}},
            f"{STEP}/component/output_data",
            "ignores it",
        ),
    ],
)
def test_what_azure_ignores_is_noted_with_what_was_meant(
    folder: Path, path: str, value: object, pointer: str, why: str
) -> None:
    reading = read(changed(PIPELINE, **{path: value}), folder)
    assert why in {note.pointer: note.message for note in reading.notes}[pointer]


@pytest.mark.parametrize("path, value, pointer, why", NOT_HERE)
def test_what_can_be_had_in_azure_only_is_refused_with_what_to_do(
    folder: Path, path: str, value: object, pointer: str, why: str
) -> None:
    found = problems(changed(PIPELINE, **{path: value}), folder)
    assert pointer in found, found
    assert why in found[pointer]


@pytest.mark.parametrize(
    "path, value",
    [
        ("jobs.score.mini_batch_size", DELETE),
        ("jobs.score.mini_batch_size", "1MB"),
        ("jobs.score.task.type", "Run_Function"),
        ("jobs.score.type", "Parallel"),
        ("jobs.score.retry_settings", {"max_retries": 0, "timeout": 259_200}),
        ("jobs.score.environment_variables", {}),
        ("jobs.score.inputs.files", {"type": "uri_file", "path": "./data/one.txt"}),
        ("jobs.score.mini_batch_size", "${{parent.inputs.count}}"),
        ("jobs.score.max_concurrency_per_instance", "${{parent.inputs.count}}"),
        ("jobs.score.resources", {"instance_count": "${{parent.inputs.count}}", "instance_type": "STANDARD_D2"}),
        ("jobs.score.retry_settings", {"max_retries": 1, "timeout": "${{parent.inputs.count}}"}),
    ],
)  # fmt: skip
def test_what_is_right_is_taken(folder: Path, path: str, value: object) -> None:
    assert not problems(changed(PIPELINE, **{path: value}), folder)


def test_a_component_must_get_the_inputs_that_it_requires(folder: Path) -> None:
    step = {"component": COMPONENT, "inputs": {}}
    assert "a path is required" in problems(changed(PIPELINE, **{"jobs.score": step}), folder)[f"{STEP}/inputs/files"]


def test_a_component_says_the_number_of_nodes_once(folder: Path) -> None:
    twice = changed(COMPONENT, resources={"instance_count": 2}, instance_count=2)
    step = {"component": twice, "inputs": {"files": "${{parent.inputs.raw}}"}}
    found = problems(changed(PIPELINE, **{"jobs.score": step}), folder)
    assert "resources" in found[f"{STEP}/component/instance_count"]


@pytest.mark.parametrize(
    "value, why",
    [(0, "between"), ("10", "between"), ("three", "integer"), (2.5, "integer"), (True, "integer"), ("inf", "integer")],
)
def test_a_value_is_held_against_what_the_component_declares(folder: Path, value: object, why: str) -> None:
    step = {"component": COMPONENT, "inputs": {"files": "${{parent.inputs.raw}}", "limit": value}}
    assert why in problems(changed(PIPELINE, **{"jobs.score": step}), folder)[f"{STEP}/inputs/limit"]


@pytest.mark.parametrize(
    "kind, value", [("boolean", "yes"), ("boolean", 1), ("number", "nan"), ("number", "x"), ("number", False)]
)
def test_a_literal_that_is_not_of_its_type_is_refused(folder: Path, kind: str, value: object) -> None:
    document = changed(COMPONENT, **{"inputs.files.path": "./data", "inputs.limit": {"type": kind, "default": value}})
    assert f"is not of type {kind}" in problems(document, folder)["/inputs/limit"]


def test_the_hint_for_a_missing_literal_leads_to_its_value(folder: Path) -> None:
    alone = changed(COMPONENT, **{"inputs.files.path": "./data", "inputs.limit": {"type": "integer"}})
    assert "--set inputs.limit.value=…" in problems(alone, folder)["/inputs/limit"]
    set_field(alone, "inputs.limit.value=5")
    assert not problems(alone, folder)
    component = changed(COMPONENT, **{"inputs.limit": {"type": "integer"}})
    step = {"component": component, "inputs": {"files": "${{parent.inputs.raw}}"}}
    pipeline = changed(PIPELINE, **{"jobs.score": step})
    assert "--set jobs.score.inputs.limit.value=…" in problems(pipeline, folder)[f"{STEP}/inputs/limit"]
    set_field(pipeline, "jobs.score.inputs.limit.value=5")
    assert not problems(pipeline, folder)


def test_only_fields_that_a_pipeline_has_not_are_said_to_be_a_steps(folder: Path) -> None:
    found = problems(changed(PIPELINE, tags=["a"], mini_batch_size="1"), folder)
    assert "it is a field of the step: jobs.score.mini_batch_size" in found["/mini_batch_size"]
    assert "field of the step" not in found["/tags"]


def test_all_that_is_wrong_is_told_at_once(folder: Path) -> None:
    bad = changed(PIPELINE, **{"jobs.score.mini_batch_size": 5, "jobs.score.error_threshold": -7, "jobs.score.x": 1})
    assert {f"{STEP}/mini_batch_size", f"{STEP}/error_threshold", f"{STEP}/x"} <= problems(bad, folder).keys()


CONFIG_FIELD = "/parallel_run_config"


@pytest.mark.parametrize(
    "path, value, pointer, why",
    [
        *((f"parallel_run_config.{name}", DELETE, f"{CONFIG_FIELD}/{name}", "required")
          for name in ("entry_script", "error_threshold", "output_action", "node_count", "environment",
                       "compute_target_name")),
        ("parallel_run_config.error_threshold", -2, f"{CONFIG_FIELD}/error_threshold", "or equal to -1"),
        ("parallel_run_config.output_action", "append", f"{CONFIG_FIELD}/output_action", "append_row"),
        ("parallel_run_config.node_count", 0, f"{CONFIG_FIELD}/node_count", "or equal to 1"),
        ("parallel_run_config.process_count_per_node", 0, f"{CONFIG_FIELD}/process_count_per_node", "or equal to 1"),
        ("parallel_run_config.mini_batch_size", "1.5kb", f"{CONFIG_FIELD}/mini_batch_size", "whole number"),
        ("parallel_run_config.mini_batch_size", "1 kb", f"{CONFIG_FIELD}/mini_batch_size", "whole number"),
        ("parallel_run_config.logging_level", "ERROR", f"{CONFIG_FIELD}/logging_level", "WARNING"),
        ("parallel_run_config.run_invocation_timeout", 0, f"{CONFIG_FIELD}/run_invocation_timeout", "greater than 0"),
        ("parallel_run_config.run_max_try", 0, f"{CONFIG_FIELD}/run_max_try", "or equal to 1"),
        *(("parallel_run_config.append_row_file_name", f"a{sign}b", f"{CONFIG_FIELD}/append_row_file_name", "plain")
          for sign in '~"#%&*:<>?/\\{|}'),
        ("parallel_run_config.allowed_failed_count", -2, f"{CONFIG_FIELD}/allowed_failed_count", "or equal to -1"),
        ("parallel_run_config.allowed_failed_percent", 101, f"{CONFIG_FIELD}/allowed_failed_percent", "equal to 100"),
        ("parallel_run_config.partition_keys", ["a"], f"{CONFIG_FIELD}/partition_keys", "mini_batch_size"),
        ("parallel_run_config.no_such_field", 1, f"{CONFIG_FIELD}/no_such_field", "unknown"),
        ("parallel_run_config.on_failure", "isolate", f"{CONFIG_FIELD}/on_failure", "arguments: [--on_failure"),
        ("name", "No_Name", "/name", "lowercase letters"),
        ("name", "ab", "/name", "3 to 32"),
        ("name", "ab-", "/name", "lowercase letters"),
        ("arguments", ["model", 1], "/arguments/0", "starts with '-'"),
        *(("arguments", [f"--{name}", 1], "/arguments/0", "the engine's own")
          for name in ("mini_batch_size", "error_threshold", "allowed_failed_count", "allowed_failed_percent", "output",
                       "output_action", "logging_level", "process_count_per_node", "run_invocation_timeout",
                       "run_max_try", "append_row_file_name", "partition_keys")),
        ("inputs", ["./data", {"path": "./data", "type": "mltable"}], "/inputs", "inputs must be all files"),
        ("inputs", [{"path": "./data", "type": "mltable", "mode": "download"}], "/inputs/input_0/mode", "direct"),
        ("side_inputs", {"m": {"path": "./data", "type": "mltable"}}, "/side_inputs/m/type", "folder or a file"),
        ("inputs", ["azureml:data:1"], "/inputs/0/path", "copy the data"),
        ("inputs", ["./nowhere"], "/inputs/0/path", "no file or folder"),
        ("side_inputs", {"m": "./nowhere"}, "/side_inputs/m/path", "no file or folder"),
    ],
)  # fmt: skip
def test_what_is_wrong_in_a_v1_document_is_told(folder: Path, path: str, value: object, pointer: str, why: str) -> None:
    found = problems(changed(CONFIG, **{path: value}), folder)
    assert pointer in found, found
    assert why in found[pointer]


def test_these_documents_are_right(folder: Path) -> None:
    for document in (PIPELINE, CONFIG, changed(COMPONENT, **{"inputs.files.path": "./data"})):
        assert read(document, folder).job.code == str(folder / "src")
    assert SCRIPT
