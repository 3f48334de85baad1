"""Files that others leave in folders: what a table and a list of files leave out, and what names them all the same."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from parallelrun_core.intake.reading import read_job
from parallelrun_core.mltable.plan import plan_input
from parallelrun_core.spec.fields import Input
from parallelrun_core.storage.leftovers import is_hidden, is_litter
from parallelrun_master.planning.leftover_warnings import leftover_warnings
from parallelrun_master.planning.sources import Sources, paths_in

LEFT = ("_SUCCESS", ".DS_Store", "._a.csv", "Thumbs.db", ".~lock.a.csv#", ".a.csv.crc")
TABLE = ("read_delimited",)


def folder_with(folder: Path, *names: str) -> str:
    for name in names:
        path = folder / "in" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return str(folder / "in")


def listed(path: str, folder: str, **fields: object) -> tuple[list[str], list[str]]:
    """The files of an input, and the warnings about it."""
    given = Input.model_validate({"path": path, "hidden_files": "skip", "litter_files": "skip", **fields})
    plan = plan_input("data", given, [])
    sources = Sources(plan)
    files = [os.path.relpath(os.fsdecode(found), folder) for found in paths_in(sources)]
    return files, [each.in_words() for each in leftover_warnings(plan, sources.leftovers)]


@pytest.mark.parametrize("name, expected", [
    ("_SUCCESS", True), (".x", True), ("_metadata", True), ("_year=2026", False), ("a.csv", False), ("__x", True),
])  # fmt: skip
def test_hidden_are_names_that_begin_with_a_dot_or_an_underscore(name: str, *, expected: bool) -> None:
    assert is_hidden(name.encode()) is expected


@pytest.mark.parametrize("name, expected", [
    (".DS_Store", True), ("Thumbs.db", True), ("._a.jpg", True), ("._b.jpg", False), (".~lock.a.odt#", True),
    ("_SUCCESS", True), (".a.jpg.crc", True), ("_DSC0001.JPG", False), (".hidden", False), ("a.crc", False),
])  # fmt: skip
def test_litter_is_what_is_known_and_never_a_first_character(name: str, *, expected: bool) -> None:
    assert is_litter(name.encode(), {b"a.jpg"}) is expected


def test_leftovers_of_a_table_are_skipped_with_their_count_and_names(tmp_path: Path) -> None:
    folder = folder_with(tmp_path, "a.csv", "_year=2026/b.csv", "_temporary/0/c.csv", "_delta_log/0.json", *LEFT)
    files, (warning,) = listed(folder, folder, transformations=TABLE)
    assert files == ["_year=2026/b.csv", "a.csv"]
    assert "(8 files)" in warning
    assert "_SUCCESS" in warning
    assert "inputs.data.hidden_files: read" in warning
    assert folder in warning
    folder_with(tmp_path, "summary.json", "below/c.CSV", "below/d.csv")
    for extension in (".csv", "csv"):
        files, _ = listed(folder, folder, transformations=[{"read_delimited": {"file_extension": extension}}])
        assert files == ["_year=2026/b.csv", "a.csv", "below/d.csv"]


def test_leftovers_of_a_list_are_only_what_is_known(tmp_path: Path) -> None:
    folder = folder_with(tmp_path, "a.csv", "_DSC0001.JPG", ".env", "_x/b", "._alone", *LEFT)
    files, (warning,) = listed(folder, folder)
    assert files == ["._alone", ".env", "_DSC0001.JPG", "_x/b", "a.csv"]
    assert "(6 files)" in warning
    assert "inputs.data.litter_files: read" in warning


def test_leftovers_that_an_option_has_back_are_read_without_a_warning(tmp_path: Path) -> None:
    folder = folder_with(tmp_path, "a.csv", "_b.csv", *LEFT)
    assert listed(folder, folder, litter_files="read") == (sorted(["a.csv", "_b.csv", *LEFT]), [])
    files, warnings = listed(folder, folder, transformations=TABLE, hidden_files="read")
    assert files == ["_b.csv", "a.csv"]
    assert len(warnings) == 1


def test_leftovers_in_a_list_of_azure_are_kept_and_counted(tmp_path: Path) -> None:
    folder = folder_with(tmp_path, "a.csv", "_b.csv", *LEFT)
    files, (warning,) = listed(folder, folder, litter_files="warn")
    assert files == sorted(["a.csv", "_b.csv", *LEFT])
    assert "(6 files)" in warning


@pytest.mark.parametrize("pattern, expected", [
    ("*", ["a.csv"]), ("**", ["a.csv", "sub/b.csv"]), ("_*", ["_SUCCESS", "_x.csv"]), ("[_]*.csv", ["_x.csv"]),
    ("_x.csv", ["_x.csv"]), ("_old/*", ["_old/c.csv"]), ("*/c.csv", []), ("_o*/*.csv", ["_old/c.csv"]),
    ("**/.h*", [".h"]),
])  # fmt: skip
def test_leftovers_that_a_pattern_names_are_read(tmp_path: Path, pattern: str, expected: list[str]) -> None:
    folder = folder_with(tmp_path, "a.csv", "_x.csv", "_SUCCESS", ".h", "sub/b.csv", "_old/c.csv")
    assert listed(f"{folder}/{pattern}", folder, transformations=TABLE)[0] == expected


def test_leftovers_that_a_path_names_are_read(tmp_path: Path) -> None:
    folder = folder_with(tmp_path, "_x/a.csv", "_x/.DS_Store", ".b.csv")
    assert listed(f"{folder}/.b.csv", folder, transformations=TABLE) == ([".b.csv"], [])
    assert listed(f"{folder}/_x", folder, transformations=TABLE)[0] == ["_x/a.csv"]
    assert listed(f"{folder}/_x/.DS_Store", folder) == (["_x/.DS_Store"], [])
    assert listed(f"{folder}/_x/.DS*", folder) == (["_x/.DS_Store"], [])


@pytest.mark.parametrize("spelled", ["{}/sub/..", "{}/sub/../*", "{}//", "{}/./*.csv", "{}/sub/../../in/*"])
def test_leftovers_are_skipped_however_the_folder_is_spelled(tmp_path: Path, spelled: str) -> None:
    folder = folder_with(tmp_path, "a.csv", "_b.csv", "sub/_c")
    assert listed(spelled.format(folder), folder, transformations=TABLE)[0] == ["a.csv"]


def test_leftovers_of_a_job_of_an_earlier_release_are_read(tmp_path: Path) -> None:
    folder = folder_with(tmp_path, "a.csv", "_b.csv", *LEFT)
    none = {"hidden_files": "", "litter_files": ""}
    assert len(listed(folder, folder, **none)[0]) == len(LEFT) + 2
    assert len(listed(folder, folder, transformations=TABLE, **none)[0]) == len(LEFT) + 2


def test_leftovers_are_decided_when_a_document_is_read(tmp_path: Path) -> None:
    own = read_job({"entry_script": "e.py", "inputs": {"a": "/a", "b": {"path": "/b", "type": "mltable"}},
                    "input_data": ["a", "b"]}).job  # fmt: skip
    config = {
        "entry_script": "e.py", "source_directory": ".", "environment": "azureml:x@latest", "error_threshold": 1,
        "output_action": "summary_only", "node_count": 1, "compute_target_name": "any",
    }  # fmt: skip
    v1 = read_job({"parallel_run_config": config, "inputs": ["/a"]}, folder=tmp_path).job
    assert [(given.hidden_files, given.litter_files) for _, given in own.data_inputs()] == [
        ("skip", "skip"), ("skip", "warn"),
    ]  # fmt: skip
    assert [(given.hidden_files, given.litter_files) for _, given in v1.data_inputs()] == [("skip", "warn")]
    again = read_job(v1.model_dump(mode="json")).job
    assert again.inputs == v1.inputs


@pytest.mark.parametrize("name", ["b.csv.tmp", "b.csv.part", "b.csv.crdownload", "a.csv.bak", "a.csv~", "#a.csv#"])
def test_parts_and_old_copies_in_a_table_are_read_with_a_warning(tmp_path: Path, name: str) -> None:
    folder = folder_with(tmp_path, "a.csv", name)
    files, (warning,) = listed(folder, folder, transformations=TABLE)
    assert sorted(files) == sorted(["a.csv", name])
    assert name in warning
    assert listed(folder, folder)[1] == []


def test_files_of_a_delta_table_are_told_to_have_rows_that_it_has_no_more(tmp_path: Path) -> None:
    for above in ("", "x/"):
        folder = folder_with(tmp_path, f"{above}a.parquet", f"{above}_delta_log/00000000000000000000.json")
        _, warnings = listed(folder, folder, transformations=("read_parquet",))
        assert ["rows that were deleted or replaced" in warning for warning in warnings] == [False, True]


@pytest.mark.parametrize("name", ["desktop.ini", "a.csv:Zone.Identifier"])
def test_what_windows_leaves_beside_files_is_skipped(tmp_path: Path, name: str) -> None:
    folder = folder_with(tmp_path, "a.csv", name)
    for transformations in (TABLE, ()):
        files, (warning,) = listed(folder, folder, transformations=transformations)
        assert files == ["a.csv"]
        assert name in warning


def test_names_with_brackets_are_taken_as_they_are_if_they_are_there(tmp_path: Path) -> None:
    folder = folder_with(tmp_path, "run [1]/a.csv", "run [1]/b.txt", "run 1/c.csv")
    assert listed(f"{folder}/run [1]/*.csv", folder)[0] == ["run [1]/a.csv"]
    assert listed(f"{folder}/run [[]1]/*.csv", folder)[0] == ["run [1]/a.csv"]
    assert listed(f"{folder}/ru[n] 1/*", folder)[0] == ["run 1/c.csv"]
