"""A field that a job file sets and that has no effect gets a note; nothing is passed over in silence."""

from __future__ import annotations

from typing import Any

import pytest

from parallelrun_core.intake.reading import read_job

JOB: dict[str, Any] = {"entry_script": "a.py", "inputs": {"a": "/a"}}
TABLE = {"path": "/a", "transformations": ["read_parquet"]}
FILE = {"outputs": {"o": {"type": "uri_file", "path": "/o/x.txt"}}, "append_row_to": "o"}


def noted(**fields: Any) -> set[str]:
    notes = read_job({**JOB, **fields}).notes
    assert all(note.message.endswith("so this has no effect") for note in notes)
    return {note.pointer for note in notes}


@pytest.mark.parametrize(
    "fields, pointers",
    [
        ({"output_action": "summary_only", "append_row_separator": ","}, {"/append_row_separator"}),
        ({"output_action": "summary_only", "append_row_file_name": "x"}, {"/append_row_file_name"}),
        ({"append_row_file_name": "x.jsonl", "append_row_separator": ","}, {"/append_row_separator"}),
        ({"append_row_file_name": "x.parquet", "append_row_safe_output": True}, {"/append_row_safe_output"}),
        ({**FILE, "append_row_file_name": "y.txt"}, {"/append_row_file_name"}),
        ({"rank_mini_batch_count": 3, "mini_batch_size": 4}, {"/mini_batch_size"}),
        ({"rank_mini_batch_count": 3, "on_failure": "isolate"}, {"/on_failure"}),
        (
            {"mini_batch_format": "arrow", "environment_variables": {"PYTHONPATH": "/a:lib"}},
            {"/mini_batch_format", "/environment_variables/PYTHONPATH"},
        ),
        ({"inputs": {"a": {"path": "/a", "hidden_files": "read"}}}, {"/inputs/a/hidden_files"}),
        (
            {"inputs": {"a": "/a", "m": {"path": "/m", "litter_files": "read"}}, "input_data": ["a"]},
            {"/inputs/m/litter_files"},
        ),
        ({"entry_script": "", "command": "ls", "fail_fast": True}, {"/fail_fast"}),
    ],
)
def test_a_field_without_effect_is_noted(fields: dict[str, Any], pointers: set[str]) -> None:
    assert noted(**fields) == pointers


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"append_row_file_name": "x.csv", "append_row_separator": ",", "append_row_safe_output": True},
        {"append_row_file_name": "x.parquet"},
        {"inputs": {"a": {**TABLE, "hidden_files": "read"}}, "mini_batch_format": "arrow"},
        {"on_failure": "isolate", "mini_batch_size": 4, "output": "s3://bucket/out"},
        {"rank_mini_batch_count": 3, "output_action": "summary_only"},
        FILE,
    ],
)
def test_what_has_an_effect_is_not_noted_nor_is_it_when_it_is_read_again(fields: dict[str, Any]) -> None:
    assert noted(**fields) == set()
    assert read_job(read_job({**JOB, **fields}).spec.model_dump(mode="json")).notes == ()
