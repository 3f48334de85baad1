"""All kinds of inputs into the manifest: what is listed, in which order, and nothing twice after a failover."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parallelrun_core.errors import InvalidInput
from parallelrun_core.folder.decided import Decided
from parallelrun_core.folder.manifest import ManifestWriter, read_manifest
from parallelrun_core.mltable.input_plan import load_plans
from parallelrun_core.spec import JobSpec
from parallelrun_core.wire.message import DescribedMiniBatch, decode, described_of, files_of, is_described
from parallelrun_master.planning.changed_inputs import changed_inputs
from parallelrun_master.planning.input_cuts import InputCuts, KnownInput, known_in


class Job:
    """A job's folder, and what its leaders write there."""

    def __init__(self, folder: Path, **fields: Any) -> None:
        self.folder = folder / "job"
        self.folder.mkdir()
        self.spec = JobSpec.parse({"entry_script": "e.py", **fields})
        self._term = 0

    def lead(self, mini_batches: int = 1 << 30) -> None:
        """One more leader goes on, and dies after so many mini-batches."""
        self._term += 1
        writer = ManifestWriter(self.folder, self._term)
        try:
            for found in InputCuts(self.folder, self.spec, known_in(self.folder)):
                if found is not None:
                    writer.add(found.raw, found.items)
                    mini_batches -= 1
                    if not mini_batches:
                        break
        finally:
            writer.sync()
            writer.stop()

    def mini_batches(self) -> list[list[str]]:
        """The files of each, below the input."""
        found = [files_of(decode(entry.raw)) for entry in read_manifest(self.folder)]
        return [[os.fsdecode(path).rpartition("/in/")[2] for path in paths] for paths in found]

    def described(self) -> list[DescribedMiniBatch]:
        return [described_of(decode(entry.raw)) for entry in read_manifest(self.folder)]


def tree(folder: Path, *names: str) -> str:
    for name in names:
        path = folder / "in" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("n,m\n5,6\n7,8\n")
    return str(folder / "in")


def with_mltable(folder: Path, text: str, *names: str) -> dict[str, Any]:
    path = tree(folder, *names)
    (folder / "in" / "MLTable").write_text(text)
    return {"data": {"path": path, "type": "mltable"}}


def listed(job: Job) -> list[str]:
    job.lead()
    return [name for names in job.mini_batches() for name in names]


NAMES = ("f1.csv", "f10.csv", "f2.csv", "deep/x.csv", "z/a/y.csv")


@pytest.mark.parametrize("paths, expected", [
    ("- folder: ./", ["deep/x.csv", "f1.csv", "f10.csv", "f2.csv", "z/a/y.csv"]),
    ("- folder: .", ["deep/x.csv", "f1.csv", "f10.csv", "f2.csv", "z/a/y.csv"]),
    ("- pattern: ./*.csv", ["f1.csv", "f10.csv", "f2.csv"]),
    ("- pattern: '**/*.csv'", ["deep/x.csv", "f1.csv", "f10.csv", "f2.csv", "z/a/y.csv"]),
    ("- pattern: ./z/**/y.*", ["z/a/y.csv"]),
    ("- pattern: f?.csv", ["f1.csv", "f2.csv"]),
    ("- pattern: 'f[0-9].csv'", ["f1.csv", "f2.csv"]),
    ("- file: ./f2.csv\n- file: f1.csv\n- folder: z", ["f2.csv", "f1.csv", "z/a/y.csv"]),
    ("- file: ./deep", ["deep/x.csv"]),
    ("- file: f1.csv\n- file: f1.csv", ["f1.csv", "f1.csv"]),
])  # fmt: skip
def test_the_paths_of_an_mltable(tmp_path: Path, paths: str, expected: list[str]) -> None:
    job = Job(tmp_path, inputs=with_mltable(tmp_path, f"type: mltable\npaths:\n{paths}\n", *NAMES))
    assert listed(job) == expected


@pytest.mark.parametrize("spelling", ["{}//in/MLTable", "{}/./in/MLTable", "{}//in/./"])
def test_an_mltable_is_no_data_however_its_path_is_spelled(tmp_path: Path, spelling: str) -> None:
    text = "paths:\n- folder: ./\ntransformations:\n- extract_columns_from_partition_format: '{shop}/{rest}.csv'\n"
    given = with_mltable(tmp_path, text, "s/a.csv", "t/b.csv")["data"]
    job = Job(tmp_path, inputs={"data": {**given, "path": spelling.format(tmp_path)}}, partition_keys=["shop"])
    assert listed(job) == ["s/a.csv", "t/b.csv"]
    assert [one.keys for one in job.described()] == [["s"], ["t"]]


@pytest.mark.parametrize(
    "text", ["paths:\n- file: a.csv\n", '{"paths": [{"file": "a.csv"}]}', "# n\n'paths': [file: a.csv]"]
)
def test_an_mltable_of_another_name_is_read_as_one_with_steps_of_the_job(tmp_path: Path, text: str) -> None:
    tree(tmp_path, "a.csv")
    (tmp_path / "in" / "sales_table").write_text(text)
    given = {"path": f"{tmp_path}/in/sales_table", "type": "mltable", "transformations": ["read_delimited"]}
    assert listed(Job(tmp_path, inputs={"data": given})) == ["a.csv"]


@pytest.mark.parametrize("text", ["paths,n\na,1\n", "n\n1\n", "paths: [\n", "- paths\n", "\xff"])
def test_data_of_any_name_are_data_with_a_read_step_of_the_job(tmp_path: Path, text: str) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "sales").write_text(text, encoding="latin-1")
    given = {"path": f"{tmp_path}/in/sales", "type": "mltable", "transformations": ["read_delimited"]}
    assert listed(Job(tmp_path, inputs={"data": given})) == ["sales"]


def test_a_folder_whose_name_looks_like_a_pattern(tmp_path: Path) -> None:
    folder = tmp_path / "[a]*"
    folder.mkdir()
    job = Job(
        tmp_path, inputs=with_mltable(folder, "paths:\n- pattern: ./*.csv\n- file: ./x[1].csv\n", "b.csv", "x[1].csv")
    )
    assert listed(job) == ["b.csv", "x[1].csv", "x[1].csv"]


def test_a_file_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    job = Job(tmp_path, inputs=with_mltable(tmp_path, "paths:\n- file: ./gone.csv\n", "b.csv"))
    with pytest.raises(FileNotFoundError):
        job.lead()


def test_what_an_mltable_says_is_frozen_when_the_job_begins(tmp_path: Path) -> None:
    job = Job(tmp_path, inputs=with_mltable(tmp_path, "paths:\n- pattern: ./f*.csv\n", *NAMES), mini_batch_size=1)
    job.lead(1)
    (tmp_path / "in" / "MLTable").write_text("paths:\n- folder: ./z\n")
    assert listed(job) == ["f1.csv", "f10.csv", "f2.csv"]


def test_files_and_tables_do_not_mix(tmp_path: Path) -> None:
    path = tree(tmp_path, "a.csv")
    table = {"path": path, "transformations": ["read_delimited"]}
    job = Job(tmp_path, inputs={"files": path, "rows": table}, input_data=["files", "rows"])
    with pytest.raises(InvalidInput, match="inputs must be all files or all tables"):
        job.lead()


def test_no_mini_batch_spans_two_inputs(tmp_path: Path) -> None:
    path = tree(tmp_path, "a/1", "a/2", "a/3", "b/1", "b/2")
    job = Job(tmp_path, inputs={"b": f"{path}/b", "a": f"{path}/a"}, input_data=["a", "b"], mini_batch_size=2)
    job.lead()
    assert job.mini_batches() == [["a/1", "a/2"], ["a/3"], ["b/1", "b/2"]]


def test_the_same_files_in_two_inputs_are_there_twice_after_a_failover_too(tmp_path: Path) -> None:
    path = tree(tmp_path, "1", "2", "3")
    job = Job(tmp_path, inputs={"a": path, "b": path}, input_data=["a", "b"], mini_batch_size=2)
    job.lead(1)
    job.lead(1)
    job.lead()
    assert Counter(name for names in job.mini_batches() for name in names) == {"1": 2, "2": 2, "3": 2}


FEW = {"transformations": ["read_delimited", {"filter": 'col("n") > 5'}, {"take": 1}]}
OTHERS = {"transformations": ["read_delimited", {"filter": 'col("n") <= 5'}, {"take": 1}]}
ALL = {"transformations": ["read_delimited"]}


@pytest.mark.parametrize("first, second", [(FEW, OTHERS), (FEW, ALL), (ALL, FEW), (ALL, ALL)])
def test_two_inputs_of_the_same_table_are_both_there_whenever_a_leader_dies(
    tmp_path: Path, first: dict[str, Any], second: dict[str, Any]
) -> None:
    path = tree(tmp_path, "a.csv", "b.csv")
    inputs = {"first": {"path": path, **first}, "second": {"path": path, **second}}

    def cuts(*deaths: int) -> list[DescribedMiniBatch]:
        folder = tmp_path / "-".join(map(str, ("died", *deaths)))
        folder.mkdir()
        job = Job(folder, inputs=inputs, input_data=["first", "second"])
        for mini_batches in (*deaths, 1 << 30):
            job.lead(mini_batches)
        return job.described()

    whole = cuts()
    assert {described.input for described in whole} == {0, 1}
    assert all(cuts(death) == whole for death in range(1, len(whole)))


KEYS = {"transformations": [{"extract_columns_from_partition_format": "{user}/{genre}/{file}"}]}
KEYED = ("u2/a/1", "u1/b/2", "u1/a/3", "u1/b/4", "other")


def test_files_of_equal_values_are_one_mini_batch(tmp_path: Path) -> None:
    data = {"path": tree(tmp_path, *KEYED), **KEYS}
    job = Job(tmp_path, inputs={"data": data}, partition_keys=["genre", "user"])
    job.lead(2)
    job.lead()
    assert [tuple(found.keys) for found in job.described()] == [(None, None), ("a", "u1"), ("a", "u2"), ("b", "u1")]
    assert job.mini_batches() == [["other"], ["u1/a/3"], ["u2/a/1"], ["u1/b/2", "u1/b/4"]]


@pytest.mark.parametrize("text, path, expected", [
    ("{store}/{brand}/*", "1006/a b%20c/data.csv", ["1006", "a b%20c"]),
    ("{store}/{brand}/{file_name}.{extension}", "2/minute.maid/data.csv", ["2", "minute.maid", "data", "csv"]),
    ("{brand}/{store}.csv", "x/y/b/s.csv", ["b", "s"]),
    ("/{brand}/{store}.csv", "b/s.csv", ["b", "s"]),
    ("*/{brand}/{store}.csv", "z/b/s.csv", ["b", "s"]),
    ("in/{brand}/*", "b/s.csv", ["b"]),
    ("{a}_{b}.csv", "p_q_r.csv", ["p_q", "r"]),
    ("{store}/{brand}/*", "data.csv", [None, None]),
    ("{d:yyyy/MM/dd}/{x}.csv", "2020/01/02/f.csv", ["2020/01/02", "f"]),
    ("k/{store}/", "k/7/deep/f.csv", ["7"]),
])  # fmt: skip
def test_how_a_partition_format_is_matched(tmp_path: Path, text: str, path: str, expected: list[str | None]) -> None:
    data = {"path": tree(tmp_path, path), "transformations": [{"extract_columns_from_partition_format": text}]}
    names = [part.partition(":")[0] for part in text.replace("{", "}").split("}")[1::2]]
    job = Job(tmp_path, inputs={"data": data}, partition_keys=names)
    job.lead()
    assert [found.keys for found in job.described()] == [expected]


def odd_file(folder: Path, *parts: bytes) -> str:
    """A file below the input whose path is no UTF-8, which file systems don't mind."""
    path = os.path.join(os.fsencode(folder), b"in", *parts)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(b"n,m\n5,6\n7,8\n")
    return str(folder / "in")


@pytest.mark.parametrize("steps", [[], [{"keep_columns": "n"}]], ids=["as it is", "with columns to look at"])
def test_a_table_in_a_file_whose_name_is_no_utf_8(tmp_path: Path, steps: list[object]) -> None:
    data = {"path": odd_file(tmp_path, b"b\xff.csv"), "transformations": ["read_delimited", *steps]}
    job = Job(tmp_path, inputs={"data": data})
    job.lead()
    job.lead()
    assert [os.path.basename(piece.path) for found in job.described() for piece in found.pieces] == [b"b\xff.csv"]
    plans = load_plans(job.folder)
    assert plans is not None
    assert [os.fsencode(path) for path in plans[0].sample] == [os.path.join(os.fsencode(tmp_path), b"in", b"b\xff.csv")]


def test_values_of_keys_that_are_no_utf_8_are_told_apart(tmp_path: Path) -> None:
    for parts in ((b"b\xff", b"1"), (b"b\xfe", b"2"), (b"\xc3\xa9", b"3")):
        odd_file(tmp_path, *parts)
    data = {"path": str(tmp_path / "in"), "transformations": [{"extract_columns_from_partition_format": "{store}/*"}]}
    job = Job(tmp_path, inputs={"data": data}, partition_keys=["store"])
    job.lead(1)
    job.lead()
    assert [found.keys for found in job.described()] == [["b\\xfe"], ["b\\xff"], ["é"]]
    assert [[name.encode(errors="surrogateescape") for name in names] for names in job.mini_batches()] == [
        [b"b\xfe/2"], [b"b\xff/1"], [b"\xc3\xa9/3"],
    ]  # fmt: skip


@given(
    files=st.integers(1, 6), size=st.sampled_from([3, 4, "rows:1", 100]), deaths=st.lists(st.integers(1, 3), max_size=3)
)
@settings(deadline=None, max_examples=40)
def test_leaders_that_die_leave_no_gap_and_nothing_twice(
    tmp_path_factory: pytest.TempPathFactory, files: int, size: int | str, deaths: list[int]
) -> None:
    def table(name: str) -> Job:
        folder = tmp_path_factory.mktemp(name)
        data = {"path": tree(folder, *map(str, range(files))), "transformations": ["read_delimited"]}
        return Job(folder, inputs={"data": data}, mini_batch_size=size)

    once, often = table("once"), table("often")
    once.lead()
    for mini_batches in [*deaths, 1 << 30]:
        often.lead(mini_batches)

    def pieces(job: Job) -> list[tuple[str, int, int]]:
        found = [piece for described in job.described() for piece in described.pieces]
        return [(os.path.basename(piece.path).decode(), piece.start, piece.end) for piece in found]

    assert pieces(often) == pieces(once)


def test_ranks(tmp_path: Path) -> None:
    job = Job(tmp_path, inputs={}, rank_mini_batch_count=5)
    job.lead(2)
    job.lead()
    assert [found.input for found in job.described()] == [-1] * 5
    assert load_plans(job.folder) is None


def test_a_table_that_has_changed_is_told(tmp_path: Path) -> None:
    data = {"path": tree(tmp_path, "a.csv", "b.csv"), "transformations": ["read_delimited"]}
    job = Job(tmp_path, inputs={"data": data})
    job.lead()
    assert changed_inputs(job.folder, Decided()) == []
    (tmp_path / "in" / "b.csv").unlink()
    assert changed_inputs(job.folder, Decided()) == [f"{tmp_path}/in/b.csv is gone"]


def test_files_that_are_copied_say_of_which_input_they_are(tmp_path: Path) -> None:
    path = tree(tmp_path, "1", "2", "3")
    job = Job(tmp_path, inputs={"data": {"path": path, "mode": "download"}}, mini_batch_size=2)
    job.lead()
    assert [found.input for found in job.described()] == [0, 0]
    assert job.mini_batches() == [["1", "2"], ["3"]]
    plain = Job(tmp_path / "in", inputs=path)
    assert not any(
        is_described(decode(found.raw)) for found in InputCuts(plain.folder, plain.spec, KnownInput()) if found
    )
