"""What a job freezes about its tables is believed only if it is what was written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from parallelrun_core.errors import CorruptLog
from parallelrun_core.layout import Layout
from parallelrun_core.mltable.input_plan import load_plans, save_plans
from parallelrun_core.mltable.plan import plan_inputs
from parallelrun_core.spec import JobSpec
from parallelrun_worker.tables.plan_records import read
from parallelrun_worker.tables.schema import Schema, freeze, frozen

KINDS: list[dict[str, Any]] = [{"kind": "integer"}, {"kind": "string"}]


def changed(raw: bytes, at: int) -> bytes:
    return raw[:at] + bytes([raw[at] ^ 1]) + raw[at + 1 :]


def test_columns_that_were_changed_are_not_believed(tmp_path: Path) -> None:
    path = tmp_path / "schema.0.json"
    freeze(str(path), Schema(["number", "näme"], KINDS))
    raw = path.read_bytes()
    for at in range(len(raw)):
        path.write_bytes(changed(raw, at))
        try:
            schema = frozen(str(path))
        except ValueError as error:
            assert str(path) in str(error) or isinstance(error, UnicodeDecodeError)  # noqa: PT017 - it may be right, too
            continue
        assert schema is not None
        assert (schema.names, schema.kinds) == (["number", "näme"], KINDS), f"byte {at}"


def test_columns_of_an_earlier_release_are_believed(tmp_path: Path) -> None:
    path = tmp_path / "schema.0.json"
    path.write_text('{"names": ["a"], "kinds": [{"kind": "integer"}]}')
    schema = frozen(str(path))
    assert schema is not None
    assert schema.names == ["a"]


def test_plans_that_were_changed_are_believed_neither_by_masters_nor_by_workers(tmp_path: Path) -> None:
    spec = JobSpec.parse({"entry_script": "a.py", "inputs": "/data/ä"})
    plans = save_plans(tmp_path, plan_inputs(spec))
    path = Layout(tmp_path).inputs
    raw = path.read_bytes()
    plain = read(str(path))
    assert load_plans(tmp_path) == plans
    believed = 0
    for at in range(len(raw)):
        path.write_bytes(changed(raw, at))
        try:
            by_worker = read(str(path))
        except ValueError:
            with pytest.raises(CorruptLog, match=r"inputs\.json can't be read"):
                load_plans(tmp_path)
            continue
        believed += 1
        if by_worker == plain:
            assert load_plans(tmp_path) == plans
        else:
            assert [sorted(record)[0] for record in by_worker], "only the name of the checksum itself was changed"
            assert [set(record) - set(json.loads(raw)[0]) for record in by_worker] != [set()]
    assert believed < len(raw) / 4, "blanks, and the name of the checksum"
