"""Where the objects of a job's inputs are on a node."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from parallelrun_agent.staging.tree import JobTree, side_inputs
from parallelrun_core.spec import JobSpec


def tree_of(**fields: Any) -> JobTree:
    tree = JobTree(Path("/t"), spec_of(**fields))
    tree.begin_session()
    return tree


def spec_of(**fields: Any) -> JobSpec:
    return JobSpec.parse({"entry_script": "e.py", "code": "/c", **fields})


@pytest.mark.parametrize(
    "path, url, place",
    [
        ("s3://b/in", "s3://b/in/a/f.jpg", "/t/1/x/a/f.jpg"),
        ("s3a://b/in/", "s3://b/in/f", "/t/1/x/f"),
        ("s3://b", "s3://b/f", "/t/1/x/f"),
        ("s3://b/in/**/*.jpg", "s3://b/in/a/f.jpg", "/t/1/x/a/f.jpg"),
        ("s3://b/in/f.jpg", "s3://b/in/f.jpg", "/t/1/x/f.jpg"),
        ("s3://b/in", "s3://b/index/f", "/t/1/.stores/b/index/f"),
        ("wasbs://c@a.blob.core.windows.net/in", "abfss://c@a.dfs.core.windows.net/in/f", "/t/1/x/f"),
    ],
)
def test_an_object_has_its_path_below_its_input(path: str, url: str, place: str) -> None:
    assert str(tree_of(inputs={"x": {"path": path}}).place(0, url)) == place


def test_scripts_get_the_folder_of_an_input_and_the_path_of_a_single_file() -> None:
    given = {"x": {"path": "s3://b/in/*.csv"}, "y": {"path": "s3://b/f.csv", "type": "uri_file"}, "z": {"path": "/z"}}
    assert tree_of(inputs=given, input_data=["x", "y", "z"]).paths() == {"x": "/t/1/x", "y": "/t/1/y/f.csv"}


def test_a_new_session_has_places_of_its_own() -> None:
    tree = tree_of(inputs={"x": {"path": "s3://b/in"}})
    before = tree.place(0, "s3://b/in/f")
    tree.begin_session()
    assert tree.place(0, "s3://b/in/f") != before


def test_what_is_not_cut_is_brought_whole_unless_the_script_reads_it_by_its_url() -> None:
    given = {"x": {"path": "s3://b/in"}, "m": {"path": "s3://b/m"}, "d": {"path": "s3://b/d", "mode": "direct"}}
    spec = spec_of(inputs={**given, "l": {"path": "/m"}}, input_data=["x"])
    assert side_inputs(spec) == {"m": "s3://b/m"}
