"""`parallelrun data preview`, `init --data PLACE` and `doctor`: what run() would get is seen before anything runs."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest

from parallelrun.cli import main
from parallelrun.cli.data_preview import spec_for
from parallelrun.cli.exit_codes import ExitCode
from parallelrun.doctor import job as doctor_job
from parallelrun.doctor.job import rows
from parallelrun.job_file.reading import read_job_file
from parallelrun_core.checks.data_preview import Bounds, preview
from parallelrun_core.storage.path_rule import Places
from parallelrun_core.wire.finding import Place


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "a.csv").write_text("id;name\n1;Ada\n2;\n")
    (folder / "b.csv").write_text("id;name\n3;Bob\n")
    (folder / "_SUCCESS").touch()
    return folder


def shown(capsys: pytest.CaptureFixture[str], *line: str) -> list[dict[str, Any]]:
    code = main(["data", "preview", *line, "-o", "json"])
    previews: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
    assert code == (ExitCode.USAGE if any(each["errors"] for each in previews) else ExitCode.OK)
    return previews


def test_preview_of_a_folder_finds_the_delimiter_and_shows_rows_and_types(
    capsys: pytest.CaptureFixture[str], data: Path
) -> None:
    (found,) = shown(capsys, str(data))
    assert found["read"] == {"read_delimited": {"delimiter": ";"}}
    assert [column["name"] for column in found["columns"]] == ["id", "name"]
    assert found["rows"] == [
        {"id": "1", "name": "'Ada'"}, {"id": "2", "name": None}, {"id": "3", "name": "'Bob'"},
    ]  # fmt: skip
    assert (found["files"], found["is_complete"]) == (2, True)
    assert found["encodings"] == {"utf-8": 2}
    assert found["sampled_from"] == [str(data / "a.csv"), str(data / "b.csv")]
    assert "_SUCCESS" in found["warnings"][0]
    (as_job,) = shown(capsys, str(data), "--read", 'read_delimited: {delimiter: ";"}')
    assert found["columns"] == as_job["columns"]


def test_preview_shows_a_wrong_delimiter_as_one_column(capsys: pytest.CaptureFixture[str], data: Path) -> None:
    (found,) = shown(capsys, str(data), "--read", "read_delimited", "--rows", "1")
    assert [column["name"] for column in found["columns"]] == ["id;name"]
    assert len(found["rows"]) == 1


def test_preview_of_a_job_file_reads_as_the_job_says(capsys: pytest.CaptureFixture[str], data: Path) -> None:
    job = data.parent / "job.yml"
    job.write_text(
        "entry_script: e.py\ninput_data: [pictures]\ninputs:\n  pictures: data/*.csv\n  model: {path: data/b.csv}\n"
    )
    (found,) = shown(capsys, str(job))
    assert (found["name"], found["kind"], found["read"]) == ("pictures", "files", None)
    assert found["first_files"] == [str(data / "a.csv"), str(data / "b.csv")]


@pytest.mark.parametrize("key, mini_batches, told", [
    ("shop", 2, ""), ("name", 1, ""), ("nam", 1, "no column 'nam' to group by; did you mean 'name'?"),
])  # fmt: skip
def test_preview_of_a_job_with_partition_keys_counts_groups(
    key: str, mini_batches: int, told: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    for shop in ("s=1", "s=2"):
        (tmp_path / "data" / shop).mkdir(parents=True)
        for file in ("a.csv", "b.csv"):
            (tmp_path / "data" / shop / file).write_text("id,name\n1,Ada\n")
    steps = "[read_delimited, {extract_columns_from_partition_format: 's={shop}/*.csv'}]"
    inputs = f"inputs: {{data: {{path: data, transformations: {steps}}}}}"
    job = tmp_path / "job.yml"
    job.write_text(f"entry_script: e.py\npartition_keys: [{key}]\n{inputs}\n")
    (found,) = shown(capsys, str(job))
    assert (found["mini_batches"], found["is_complete"]) == (mini_batches, key == "shop")
    assert [told in each for each in found["warnings"]] == [True for _ in filter(None, [told])]
    assert len(found["rows"]) == 4


def test_preview_names_a_file_that_can_not_be_read_and_fails(capsys: pytest.CaptureFixture[str], data: Path) -> None:
    (found,) = shown(capsys, str(data / "a.csv"), "--read", "read_parquet")
    assert str(data / "a.csv") in found["errors"][0]


def test_preview_in_words_has_the_step_the_types_and_the_warnings(
    capsys: pytest.CaptureFixture[str], data: Path
) -> None:
    assert main(["data", "preview", str(data)]) == ExitCode.OK
    text = capsys.readouterr().out
    for part in (
        '[{read_delimited: {"delimiter": ";"}}]',
        "id: int64",
        "'Ada'",
        "null",
        "_SUCCESS",
        "a.csv and 1 more",
    ):
        assert part in text


def test_preview_finds_the_delimiter_of_packed_text(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(b"id|name\n1|Ada\n2|Bob\n"))
    (found,) = shown(capsys, str(tmp_path))
    assert found["read"] == {"read_delimited": {"delimiter": "|"}}
    assert (found["compressions"], found["encodings"]) == ({"gzip": 1}, {"utf-8": 1})


def test_preview_knows_compressions_that_only_a_name_tells(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    packed = pa.compress("id\n1\n2\n".encode("utf-16"), "snappy", asbytes=True)
    (tmp_path / "a.csv.snappy").write_bytes(packed)
    (found,) = shown(capsys, str(tmp_path))
    assert (found["compressions"], found["encodings"]) == ({"snappy": 1}, {"utf-16-le": 1})
    assert found["rows"] == [{"id": "1"}, {"id": "2"}]


def test_preview_of_a_place_has_the_values_that_a_job_would_get(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "a.csv").write_text("zip,flag\n00501,1\n00502,0\n")
    (found,) = shown(capsys, str(tmp_path))
    assert found["rows"] == [{"zip": "'00501'", "flag": "1"}, {"zip": "'00502'", "flag": "0"}]
    assert found["warnings"] == []
    assert found["read"] == {"read_delimited": {}}


def test_preview_of_a_delta_table_has_the_rows_of_its_newest_version(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    for number in (1, 2):
        deltalake.write_deltalake(str(tmp_path), pa.table({"id": [number]}), mode="overwrite")
    assert len(list(tmp_path.glob("*.parquet"))) == 2
    (found,) = shown(capsys, str(tmp_path))
    assert found["read"] == {"read_delta_lake": {"version_as_of": 1}}
    assert found["rows"] == [{"id": "2"}]


def test_preview_says_one_file_of_one(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id\n1\n2\n")
    assert main(["data", "preview", str(tmp_path)]) == ExitCode.OK
    assert "  1 file, 1 mini-batch" in capsys.readouterr().out.splitlines()


def test_preview_for_others_opens_no_file_outside_of_what_is_allowed(tmp_path: Path, data: Path) -> None:
    (tmp_path / "secret.csv").write_text("id;name\n4;hunter2\n")
    (data / "c.csv").symlink_to(tmp_path / "secret.csv")
    bounds = Bounds(root=str(tmp_path / "root"), places=Places(roots=[str(data)]), memory_bytes=2 << 30)
    (found,) = preview(spec_for(str(data)), guesses=True, bounds=bounds)
    assert "c.csv" in found.errors[0]
    assert "hunter2" not in str(found)
    (data / "c.csv").unlink()
    (found,) = preview(spec_for(str(data)), guesses=True, bounds=bounds)
    assert (len(found.rows), found.errors) == (3, [])


def test_init_with_a_place_writes_the_options_that_it_found(tmp_path: Path, data: Path) -> None:
    (data / "a.csv").write_text('id;name\n1;"Ada\nLovelace"\n2;\n')
    assert main(["init", str(tmp_path / "job"), "--data", str(data)]) == ExitCode.OK
    spec = read_job_file(tmp_path / "job" / "job.yml").job
    (given,) = (given for _, given in spec.data_inputs())
    assert Path(given.path).resolve() == data.resolve()
    (data / "a.csv").write_text('id;name\n1;"Ada\n2;Bob\n')
    (found,) = preview(spec_for(str(data)), guesses=True)
    assert found.read == {"read_delimited": {"delimiter": ";"}}, "a quote alone is a character"
    own = {"on_mismatch": "keep", "inference": "exact", "columns_by": "name"}  # those of our own form
    assert given.transformations == ({"read_delimited": {**own, "delimiter": ";", "support_multi_line": True}},)


def test_init_and_preview_find_values_in_names_of_folders(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for place in ("region=eu/year=2023", "region=a%20b/year=2024"):
        (tmp_path / "data" / place).mkdir(parents=True)
        (tmp_path / "data" / place / "x.csv").write_text("id,year\n1,2\n")
    assert main(["init", str(tmp_path / "job"), "--data", str(tmp_path / "data")]) == ExitCode.OK
    assert "this step makes columns of them: extract_columns_from_partition_format: 'region={region}/*/*'" in (
        capsys.readouterr().err
    )
    (found,) = shown(capsys, str(tmp_path / "job" / "job.yml"))
    assert [(row["region"], row["year"]) for row in found["rows"]] == [("'a%20b'", "2"), ("'eu'", "2")]
    assert found["warnings"] == []


def test_doctor_says_what_the_columns_are_and_warns(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor_job, "_READ_S", 200.0)
    job = data.parent / "job.yml"
    step = '[{read_delimited: {delimiter: ";"}}]'
    job.write_text(f"entry_script: e.py\ninputs: {{rows: {{path: data, transformations: {step}}}}}\n")
    columns, warning = rows(Place(root=data, redis_url="", url="", token="", job_file=job))
    assert "id (int64)" in columns.what
    assert "_SUCCESS" in warning.what
