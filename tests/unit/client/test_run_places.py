"""Where a run on this machine may write, and how it puts the outputs of its job there. No cluster is started."""

from pathlib import Path
from typing import Any

import pytest

from parallelrun.embedded.run_places import RunPlaces
from parallelrun.embedded.services import ClusterLayout
from parallelrun.errors import InvalidInput
from parallelrun_core.folder.job_folder import JobFolder, job_folder
from parallelrun_core.spec import JobSpec


def places_of(folder: str | Path, *, overwrite: bool = False, **fields: object) -> RunPlaces:
    spec = JobSpec.parse({"entry_script": "a.py", "code": "/c", "inputs": "/in", **fields})
    return RunPlaces(spec, folder=folder, overwrite=overwrite)


@pytest.mark.parametrize(
    "pattern, folder, is_taken_in",
    [
        ("**/*.txt", "out", True),
        ("**/*.txt", "deep/er/out", True),
        ("data/**/*.txt", "out", False),
        ("data/**/*.txt", "data/out", True),
        ("*/*.txt", "out", True),
        ("*/*.txt", "out/deeper", False),
        ("*/logs/*", "out", True),
        ("batch-*/*.txt", "out", False),
        ("batch-*/*.txt", "batch-out", True),
        ("*.txt", "out", False),
        ("*.txt", ".", True),
        ("out", "out", True),
        ("[out", "[out/deeper", True),
    ],
)
def test_a_run_does_not_read_what_it_writes(tmp_path: Path, pattern: str, folder: str, is_taken_in: bool) -> None:
    (tmp_path / "[out").mkdir()  # this is no pattern, but a name
    place = tmp_path / folder

    if is_taken_in:
        with pytest.raises(InvalidInput, match="part of the job's own input"):
            places_of(place, inputs=f"{tmp_path}/{pattern}")
    else:
        places_of(place, inputs=f"{tmp_path}/{pattern}").folder.close(keep=False)


@pytest.mark.parametrize("folder", ["azureml:a:1", "azureml://datastores/unknown/paths/p", "https://h/x", "hdfs://h/x"])
def test_a_url_that_is_no_place_for_results_makes_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidInput, match="--output: "):
        places_of(folder)
    assert list(tmp_path.iterdir()) == []


def test_the_folder_for_the_results_may_be_a_file_url(tmp_path: Path) -> None:
    places_of(f"file://{tmp_path}/out").folder.close(keep=False)
    with pytest.raises(InvalidInput, match="is part of the job's own input"):
        places_of(f"file://{tmp_path}/in/out", inputs=f"{tmp_path}/in")


@pytest.mark.parametrize("folder, has_script", [("code/src", True), ("code", False), (".", False), ("code/o", False)])
def test_a_run_does_not_write_where_its_script_is(tmp_path: Path, folder: str, has_script: bool) -> None:
    (tmp_path / "code" / "src").mkdir(parents=True)
    fields: dict[str, Any] = {"code": f"{tmp_path}/code", "entry_script": "src/a.py"}

    if has_script:
        with pytest.raises(InvalidInput, match="holds the job's own entry script"):
            places_of(tmp_path / folder, **fields)
    else:
        places_of(tmp_path / folder, **fields).folder.close(keep=False)


def job_left_by(places: RunPlaces, *outputs: str) -> JobFolder:
    """What the cluster of a run leaves of a job that put these out."""
    job = job_folder(ClusterLayout(home=places.folder.home).root, "job_01kav3x8n2h7q5m9c4t6")
    job.logs.mkdir(parents=True)
    (job.logs / "job_result.txt").touch()
    for output in outputs:
        (job.outputs / output).parent.mkdir(parents=True, exist_ok=True)
        (job.outputs / output).write_text(output)
    return job


def test_names_that_begin_with_a_dot_are_handed_over_like_all_others(tmp_path: Path) -> None:
    outputs = {".rows.txt", "rows.txt", ".zgroup", ".cache/a", "store.zarr/.zarray", ".a.new", "a", ".parallelrun/b"}
    places = places_of(tmp_path, append_row_file_name=".rows.txt")
    job = job_left_by(places, *outputs, ".merging-job_01kav3x8n2h7q5m9c4t6-0f")

    places.folder.hand_over_logs(job.logs, keep=False)
    output, _ = places.hand_over_outputs(job)
    places.folder.close(keep=False)

    assert output == str(tmp_path / ".rows.txt")
    files = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    expected = (outputs - {".parallelrun/b"}) | {".parallelrun.output/b", "logs/job_result.txt", "logs/.parallelrun"}
    assert files == expected


@pytest.mark.parametrize("kind", ["uri_file", "uri_folder"])
def test_a_file_with_its_own_path_is_replaced_when_the_job_has_completed(tmp_path: Path, kind: str) -> None:
    place = tmp_path / "scores"
    place.mkdir()
    (place / "of the script").touch()
    target = place / "rows.csv"
    target.write_text("old")
    fields: dict[str, Any] = {
        "outputs": {"scores": {"type": kind, "path": str(target if kind == "uri_file" else place)}},
        "append_row_to": "scores", "append_row_file_name": "rows.csv",
    }  # fmt: skip
    with pytest.raises(InvalidInput, match=r"rows\.csv is there already .*--overwrite"):
        places_of(tmp_path / "out", **fields)

    for has_completed, left in ((False, "old"), (True, "new")):
        places = places_of(tmp_path / "out", overwrite=True, **fields)
        job = job_left_by(places, "other.txt")
        made = Path(job.output_file(places.spec))
        assert (made.parent, made.suffix) == (place, ".csv")
        assert made != target
        places.folder.hand_over_logs(job.logs, keep=False)
        if has_completed:
            made.write_text("new")
            assert places.hand_over_outputs(job) == (str(target), {})
        places.folder.close(keep=False)
        assert target.read_text() == left

    assert sorted(path.name for path in place.iterdir()) == ["of the script", "rows.csv"]


def test_what_is_no_file_is_never_replaced(tmp_path: Path) -> None:
    outputs = {"scores": {"type": "uri_file", "path": str(tmp_path / "x")}}
    (tmp_path / "x").mkdir()
    with pytest.raises(InvalidInput, match="is no file"):
        places_of(tmp_path / "out", overwrite=True, outputs=outputs, append_row_to="scores")


def test_a_file_is_no_place_for_results(tmp_path: Path) -> None:
    (place := tmp_path / "out").write_text("a letter")
    with pytest.raises(InvalidInput, match="is a file, and a folder is needed"):
        places_of(place, overwrite=True)
    with pytest.raises(InvalidInput, match="/out is a file, and a folder is needed"):
        places_of(place / "below" / "it")
    assert place.read_text() == "a letter"
