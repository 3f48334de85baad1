"""The paths of a job are checked when it is submitted: each problem with its place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from parallelrun_api.submission.checks import PathChecks
from parallelrun_core.errors import InvalidInput
from parallelrun_core.spec import JobSpec
from parallelrun_core.storage.path_rule import Places


def checked(tmp_path: Path, **fields: Any) -> list[str]:
    """What the checks have against a job, each with its place."""
    (tmp_path / "code").mkdir(exist_ok=True)
    (tmp_path / "in").mkdir(exist_ok=True)
    (tmp_path / "in" / "a.csv").touch()
    given = {"path": str(tmp_path / "in"), **fields.pop("data", {})}
    spec = JobSpec.parse({
        "code": str(tmp_path / "code"), "entry_script": "e.py", "inputs": {"data": given}, **fields
    })  # fmt: skip
    try:
        PathChecks(root=tmp_path / "root", places=Places(roots=[str(tmp_path)])).check(spec, has_zip=False)
    except InvalidInput as error:
        return [str(problem) for problem in error.problems]
    return []


def test_steps_are_checked_when_the_job_is_submitted(tmp_path: Path) -> None:
    assert checked(tmp_path, data={"transformations": ["read_delimited"]}) == []
    (problem,) = checked(tmp_path, data={"transformations": [{"read_delimited": {"delimeter": ";"}}]})
    assert problem.startswith("/inputs/data/transformations/0/read_delimited/delimeter: unknown key")
    assert "did you mean 'delimiter'?" in problem


def test_an_mltable_file_is_read_when_the_job_is_submitted(tmp_path: Path) -> None:
    (problem,) = checked(tmp_path, data={"type": "mltable"})
    assert "MLTable' can't be read" in problem
    table = tmp_path / "in" / "MLTable"
    table.write_text("paths:\n- file: ./a.csv\n- pattern: ../in/*.csv\ntransformations:\n- read_parquet\n")
    assert checked(tmp_path, data={"type": "mltable"}) == []
    table.write_text("paths:\n- file: /etc/passwd\n- folder: ./gone\n")
    assert [problem.partition(" ")[2] for problem in checked(tmp_path, data={"type": "mltable"})] == [
        f"'/etc/passwd' is outside of the folders that jobs may use (allowed_roots: {tmp_path})",
        f"the MLTable names '{tmp_path}/in/gone', which does not exist",
    ]


def test_a_file_of_type_mltable_is_a_table_if_the_job_reads_it(tmp_path: Path) -> None:
    file = tmp_path / "in" / "rows.csv"
    file.parent.mkdir(exist_ok=True)
    file.write_text("a,b\n1,2\n")
    for path in (file, file.parent / "*.csv"):
        given = {"type": "mltable", "path": str(path)}
        assert checked(tmp_path, data={**given, "transformations": ["read_delimited", {"take": 1}]}) == []
        (problem,) = checked(tmp_path, data=given)
        assert problem.startswith(f"/inputs/data/path: {str(path)!r} is not an MLTable")
        assert "as in: transformations: [read_delimited]" in problem
    (problem,) = checked(tmp_path, data={"type": "mltable", "transformations": ["read_delimited"]})
    assert "MLTable' can't be read" in problem
    assert "transformations of the job need no type" in problem


def test_keys_must_be_offered_by_the_paths(tmp_path: Path) -> None:
    steps = [{"extract_columns_from_partition_format": "{user}/{file}.csv"}]
    assert checked(tmp_path, data={"transformations": steps}, partition_keys=["user"]) == []
    (problem,) = checked(tmp_path, data={"transformations": steps}, partition_keys=["User"])
    assert problem == "/partition_keys: invalid keys of input 'data': User (its keys are user, file)"
    assert "has no partition format" in checked(tmp_path, partition_keys=["user"])[0]
