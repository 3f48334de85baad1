"""The record of a job's inputs: what older releases wrote is read, and what no release of ours wrote is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from parallelrun_core.errors import InvalidInput
from parallelrun_core.layout import INPUTS
from parallelrun_core.mltable.formats import read_steps, step_for
from parallelrun_core.mltable.formats.delimited import ReadDelimited as Delimited
from parallelrun_core.mltable.input_plan import as_json, load_plans
from parallelrun_core.mltable.plan import plan_input
from parallelrun_core.spec.fields import Input
from parallelrun_master.planning.formats import format_of as cutting_of
from parallelrun_worker.tables.formats import format_of as reading_of
from parallelrun_worker.tables.plan_records import completed

OLDER = Path(__file__).parents[2] / "golden" / "inputs.json"
"""As a release wrote it that froze no answers: each kind of table, and each kind of step."""
STEPS: tuple[dict[str, Any], ...] = (
    {"keep_columns": "a"}, {"drop_columns": "b"}, {"convert_column_types": []}, {"take": 5}, {"skip": 2},
    {"filter": 'col("a") > 1'}, {"take_random_sample": {"probability": 0.5}},
)  # fmt: skip
ANSWERS = ("libraries", "keeping", "tail")


def plans_of(folder: Path, records: list[dict[str, Any]]) -> list[Any]:
    (folder / INPUTS).write_text(json.dumps(records))
    return load_plans(folder) or []


def test_the_record_of_an_older_release_means_the_same(tmp_path: Path) -> None:
    older = json.loads(OLDER.read_bytes())
    plans = plans_of(tmp_path, older)
    assert [plan.kind for plan in plans] == ["delimited", "json_lines", "parquet", "delta_lake", "files"]
    assert [(plan.rows_wanted, plan.is_indivisible) for plan in plans] == [
        (None, True), (None, False), ((2, 5), False), (None, False), (None, False),
    ]  # fmt: skip
    assert isinstance(plans[0].read, Delimited)
    assert (plans[0].read.sample_size, plans[0].read.overrides["b"].formats) == (5, ["%Y"])
    assert plans[3].read.columns == ["n"]
    newer = json.loads(as_json(plans))
    for before, after in zip(older[:-1], newer[:-1], strict=True):
        kept = {name: after["read"][name] for name in before["read"]}
        assert {**kept, "overrides": {}} == {**before["read"], "overrides": {}}
        assert not after["read"]["has_exact_integers"]
        assert [step["step"] for step in before["steps"]] == [step["step"] for step in after["steps"]]


def test_a_worker_has_the_answers_of_the_master_for_an_older_record(tmp_path: Path) -> None:
    older = json.loads(OLDER.read_bytes())
    newer = json.loads(as_json(plans_of(tmp_path, older)))
    for before, after in zip(older, newer, strict=True):
        if before["kind"] != "files":
            assert {name: completed(before)[name] for name in ANSWERS} == {name: after[name] for name in ANSWERS}


@given(steps=st.lists(st.sampled_from(STEPS), max_size=5))
def test_answers_that_are_frozen_are_those_of_older_workers(steps: list[Any]) -> None:
    plan = plan_input("data", Input(path="/data", transformations=("read_delimited", *steps)), [])
    record = json.loads(as_json(plan))
    older = {name: value for name, value in record.items() if name not in ANSWERS}
    assert completed(older) == {**record, **{name: completed(older)[name] for name in ANSWERS}}
    assert {name: completed(older)[name] for name in ANSWERS} == {name: record[name] for name in ANSWERS}
    assert completed(record) is record


def test_a_delta_table_is_as_it_was_written_without_what_became_known() -> None:
    by_number, by_time = (
        plan_input("data", Input(path="/data", transformations=({"read_delta_lake": options},)), []).read
        for options in ({"version_as_of": 3}, {"timestamp_as_of": "2024-01-02"})
    )
    assert by_number is not None
    assert by_time is not None
    known = {"columns": ["n"], "partitions": {"n": "long"}, "schema": "…"}
    assert msgspec.structs.replace(by_number, **known).as_written() == by_number
    assert msgspec.structs.replace(by_time, version=7, **known).as_written() == by_time
    assert msgspec.structs.replace(by_number, version=4).as_written() != by_number


@pytest.mark.parametrize("change, problem", [
    ({"read": {"step": "read_excel", "include_path_column": False}}, "'d2' is read with 'read_excel', which"),
    ({"read": None, "kind": "excel"}, "'d2' is of the kind 'excel', which"),
    ({"steps": [{"step": "sort", "by": "a"}]}, "not one of this release.*sort"),
    ({"steps": [{"step": "take", "rows": "few"}]}, "not one of this release"),
])  # fmt: skip
def test_a_record_of_a_newer_release_is_refused(tmp_path: Path, change: dict[str, Any], problem: str) -> None:
    records = json.loads(OLDER.read_bytes())
    records[2] |= change
    with pytest.raises(InvalidInput, match=problem):
        plans_of(tmp_path, records)


def test_no_kind_of_table_is_taken_for_another() -> None:
    with pytest.raises(InvalidInput, match="kind 'excel' can't be cut"):
        cutting_of("excel")
    with pytest.raises(ValueError, match="kind 'excel' can't be read"):
        reading_of("excel")


def test_each_kind_of_table_has_a_module_on_each_side() -> None:
    for step in read_steps().values():
        assert cutting_of(step.kind()).__module__.endswith(f".{step.kind()}")
        assert reading_of(step.kind()).__module__.endswith(f".{step.kind()}")
        assert reading_of(step.kind()).has_fixed_columns == step.has_fixed_columns


def test_a_read_step_is_found_by_the_names_of_files() -> None:
    assert [step_for(path) for path in ("/a/b.CSV", "x.jsonl", "y.parquet", "z.png", "/a.csv/z")] == [
        "read_delimited", "read_json_lines", "read_parquet", "", "",
    ]  # fmt: skip


def test_steps_on_dataframes_are_refused_for_rows_that_are_dicts(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text("{}")
    for step in ("keep_columns: id", 'filter: col("id") > 1', "take_random_sample: {probability: 0.5}"):
        steps = ({"read_json_lines": {"rows_as": "dicts"}}, yaml.safe_load(step))

        with pytest.raises(InvalidInput, match="run\\(\\) gets dicts"):
            plan_input("data", Input(path=str(tmp_path / "rows.jsonl"), transformations=steps), [])


def test_what_an_input_says_of_odd_values_counts_more_than_its_read_step(tmp_path: Path) -> None:
    (tmp_path / "MLTable").write_text(
        "paths: [{file: rows.csv}]\ntransformations: [read_delimited: {on_mismatch: error}]"
    )
    (tmp_path / "rows.csv").write_text("a\n1\n")

    plans = [
        plan_input("data", Input(path=str(tmp_path), type="mltable", on_mismatch=on_mismatch), [])
        for on_mismatch in ("", "keep")
    ]

    assert [getattr(plan.read, "on_mismatch", None) for plan in plans] == ["error", "keep"]
