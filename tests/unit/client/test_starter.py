"""`parallelrun init`: what it writes is a job that is right as it is, and nothing is lost."""

import json
import runpy
import sys
from itertools import product
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest

from parallelrun.cli import main
from parallelrun.cli.exit_codes import ExitCode
from parallelrun.cli.init import write_new
from parallelrun.job_file.reading import read_job_file
from parallelrun.starter.kind import files_of_kind, kind_named
from parallelrun.starter.kinds import kind_names
from parallelrun.starter.plan import Answers, Result, SampleData, files_of
from parallelrun_core.spec.fields import Input


@pytest.mark.parametrize("data, result", [*product(SampleData, Result)])
def test_what_is_written_is_a_job_whose_script_works(
    data: SampleData, result: Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_new(tmp_path, files_of(Answers(name="mine", data=data, result=result)))
    spec = read_job_file(tmp_path / "job.yml").job
    script = runpy.run_path(str(tmp_path / "src" / spec.entry_script))
    (tmp_path / "results").mkdir()
    monkeypatch.setattr(sys, "argv", ["process.py", "--results", str(tmp_path / "results"), "--other", "argument"])

    mini_batch = [str(path) for path in (tmp_path / "data").glob("*.txt")] or pd.read_csv(tmp_path / "data/sales.csv")
    script["init"]()
    has_context = data is SampleData.TABLE and result is Result.FILES
    rows = script["run"](mini_batch, *[SimpleNamespace(minibatch_index=3)][: int(has_context)])

    assert len(rows) == len(mini_batch) > 2
    assert bool(list((tmp_path / "results").iterdir())) == (result is Result.FILES)
    assert (spec.output_action == "append_row") == (result is Result.ROWS)


@pytest.mark.parametrize(
    "where", ["../x y", "a: b", "~", "true", "1.5", "s3://bucket/key", "@x", "*/a.jsonl", 'a"\n- b']
)
@pytest.mark.parametrize("data", SampleData)
def test_places_and_names_of_any_kind_stay_what_they_are(data: SampleData, where: str) -> None:
    import yaml

    job = yaml.safe_load(files_of(Answers(name=where, data=data, where=where))["job.yml"])

    assert job["name"] == where
    assert (job["inputs"]["data"]["path"] if data is SampleData.TABLE else job["inputs"]) == where
    assert not any(path.startswith("data/") for path in files_of(Answers(name="a", data=data, where=where)))


def test_a_table_is_read_as_its_name_says() -> None:
    def step(where: str) -> str:
        return files_of(Answers(name="a", data=SampleData.TABLE, where=where))["job.yml"]

    assert "read_parquet: {}" in step("data/*.parquet")
    assert "read_json_lines: {}" in step("s3://bucket/a.JSONL")
    assert "read_delimited: {}" in step("somewhere")


def test_nothing_is_overwritten_and_then_nothing_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "process.py").write_text("mine")

    assert main(["init", str(tmp_path)]) == ExitCode.USAGE

    assert "src/process.py" in capsys.readouterr().err
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["process.py"]
    assert (tmp_path / "src" / "process.py").read_text() == "mine"


def test_data_that_are_not_there_are_told_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", str(tmp_path / "job"), "--data", "files", "--input", "/no/such", "--result", "rows"]) == 1
    assert "--input: there is no file or folder '/no/such'" in capsys.readouterr().err
    assert not (tmp_path / "job").exists()


def test_the_job_is_named_after_its_folder_and_finds_the_data(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "a.csv").write_text("a\n1\n")
    monkeypatch.chdir(tmp_path)

    assert main(["init", "job", "--data", "table", "--input", "mine", "--result", "rows", "-o", "json"]) == 0

    assert json.loads(capsys.readouterr().out) == {"files": ["job/job.yml", "job/src/process.py"]}
    spec = read_job_file("job/job.yml").job
    (data,) = spec.inputs.values()
    assert isinstance(data, Input)
    assert (spec.name, Path(data.path).resolve()) == ("job", tmp_path / "mine")


@pytest.mark.parametrize("kind", kind_names())
def test_each_kind_of_starter_is_a_job_with_its_sample_or_ones_own_data(kind: str, tmp_path: Path) -> None:
    write_new(tmp_path, files_of_kind(kind, name="a b"))
    (tmp_path / "mine").mkdir()
    other = files_of_kind(kind, name="true", where="../mine/*.csv")

    spec = read_job_file(tmp_path / "job.yml").job

    assert spec.name == "a b"
    assert spec.mini_batches_in_flight != 1
    assert (tmp_path / "src" / spec.entry_script) == tmp_path / kind_named(kind).script
    assert (tmp_path / kind_named(kind).sample).exists()
    assert "../mine/*.csv" in other["job.yml"]
    assert "read_json_lines" not in other["job.yml"]
    assert not any(path.startswith("data/") for path in other)


@pytest.mark.parametrize(
    "options, message",
    [
        (["--kind", "cooking"], "one of http, llm-api, vllm"),
        (["--kind", "http", "--data", "files"], "--data: a --kind decides on it"),
        (["--kind", "http", "--result", "rows"], "--result: a --kind decides on it"),
        (["--kind", "http", "--input", "/no/such"], "--input: there is no file"),
    ],
)
def test_what_a_kind_of_starter_cannot_do_is_told(
    options: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["init", str(tmp_path / "job"), *options]) == ExitCode.USAGE

    assert message in capsys.readouterr().err
    assert not (tmp_path / "job").exists()
