"""`parallelrun run` of jobs whose inputs are in a store, with nothing configured but the store's own variables."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.integration.storage.conftest import Bucket, Store
from tests.object_servers import Moto, ObjectServer

pytestmark = [
    pytest.mark.integration,
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="agents need Linux"),
]
Run = Callable[..., list[Any]]

SCRIPT = """
import json, os, sys
from pathlib import Path

def run(mini_batch):
    args = dict(zip(sys.argv[1::2], sys.argv[2::2]))
    return [json.dumps(ROW) for path in mini_batch]
"""


@pytest.fixture(scope="module")
def server(store: Store) -> ObjectServer:
    return store(Moto)


@pytest.fixture
def run(tmp_path: Path, bucket: Bucket) -> Run:
    """Runs a job whose script returns `row` for each path; returns the rows."""

    def run_job(row: str, *options: str, **fields: Any) -> list[Any]:
        (tmp_path / "src").mkdir(exist_ok=True)
        (tmp_path / "src" / "e.py").write_text(SCRIPT.replace("ROW", row))
        job = {"entry_script": "e.py", "code": "src", "mini_batch_size": 2, **fields}
        (tmp_path / "job.yml").write_text(json.dumps(job))
        done = subprocess.run(
            [sys.executable, "-m", "parallelrun", "run", "job.yml", "--output", "out", *options], cwd=tmp_path,
            env={**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}, check=False, capture_output=True,
            text=True, timeout=110,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        rows = tmp_path / "out" / "parallel_run_step.txt"
        return sorted(map(json.loads, rows.read_text().splitlines()))

    return run_job


def test_scripts_find_objects_as_files_with_their_paths_below_the_input(bucket: Bucket, run: Run) -> None:
    contents = {f"in/d{number % 3}/f{number}.txt": "x" * number for number in range(9)}
    for key, content in contents.items():
        bucket.put(key, content.encode())
    row = "[os.path.relpath(path, args['--x']), Path(path).read_text()]"

    rows = run(
        row, "--set", f"inputs.x.path={bucket.url('in')}", inputs={"x": {"path": "/to/be/set"}},
        program_arguments="--x ${{inputs.x}}",
    )  # fmt: skip

    assert rows == sorted([key.removeprefix("in/"), content] for key, content in contents.items())


def test_a_pattern_and_a_single_object_name_what_they_name_locally(bucket: Bucket, run: Run) -> None:
    for key in ("a/1.csv", "a/b/2.csv", "a/b/3.txt", "one.bin"):
        bucket.put(key, key.encode())
    inputs = {
        "x": {"path": bucket.url("a/**/*.csv")},
        "y": {"path": bucket.url("one.bin"), "type": "uri_file"},
    }

    rows = run("[Path(path).read_text(), path == args['--y']]", inputs=inputs, input_data=["x", "y"],
               program_arguments="--y ${{inputs.y}}")  # fmt: skip

    assert rows == [["a/1.csv", False], ["a/b/2.csv", False], ["one.bin", True]]


def test_what_every_worker_needs_is_here_before_the_first_one_starts(bucket: Bucket, run: Run, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "f").touch()
    bucket.put("model/weights.bin", b"weights")
    bucket.put("model/more/vocabulary.txt", b"words")
    bucket.put("labels.txt", b"labels")
    inputs = {
        "x": {"path": "data"},
        "model": {"path": bucket.url("model")},
        "labels": {"path": bucket.url("labels.txt"), "type": "uri_file"},
    }
    row = "[Path(args['--m'], 'more', 'vocabulary.txt').read_text(), Path(args['--l']).read_text()]"

    rows = run(row, inputs=inputs, input_data="x", program_arguments="--m ${{inputs.model}} --l ${{inputs.labels}}")

    assert rows == [["words", "labels"]]


def test_a_pattern_for_nothing_of_what_every_worker_needs_fails_the_job_at_once(
    bucket: Bucket, run: Run, tmp_path: Path
) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "f").touch()
    bucket.put("model/weights")
    inputs = {"x": {"path": "data"}, "model": {"path": bucket.url("model/*.bin")}}
    with pytest.raises(AssertionError) as failed:
        run("[]", inputs=inputs, input_data="x")
    assert bucket.url("model/*.bin") in str(failed.value)
    assert "An input that each worker needs whole can't be read" in str(failed.value)


def test_a_script_that_reads_by_itself_gets_urls(bucket: Bucket, run: Run) -> None:
    bucket.put("in/a", b"a")
    inputs = {"x": {"path": bucket.url("in"), "mode": "direct"}}

    rows = run("[path, args['--x'], 'AWS_SECRET_ACCESS_KEY' in os.environ]", inputs=inputs,
               program_arguments="--x ${{inputs.x}}")  # fmt: skip

    assert rows == [[bucket.url("in/a"), bucket.url("in"), True]]


def test_what_is_not_in_the_store_fails_the_job_by_its_url(bucket: Bucket, run: Run) -> None:
    with pytest.raises(AssertionError) as failed:
        run("[]", inputs={"x": {"path": bucket.url("nothing/here")}})
    assert bucket.url("nothing/here") in str(failed.value)


def test_a_table_and_its_mltable_in_a_store_are_read_in_parts(bucket: Bucket, run: Run) -> None:
    lines = "".join(f"{number},text of {number}\n" for number in range(30_000))
    bucket.put("data/a.csv", f"number,text\n{lines}".encode())
    bucket.put("t/MLTable", b"paths: [{file: ../data/a.csv}]\ntransformations: [read_delimited]\n")

    inputs = {"x": {"path": bucket.url("t"), "type": "mltable"}}
    rows = run("[path, len(mini_batch), int(mini_batch.number.sum())]", inputs=inputs, mini_batch_size="100kb")

    parts = {(count, total) for _, count, total in rows}
    assert sum(count for count, _ in parts) == 30_000
    assert sum(total for _, total in parts) == sum(range(30_000))
    assert len(parts) == 6


@pytest.mark.parametrize("name", ["x", "model"])
def test_a_run_looks_before_it_begins(bucket: Bucket, run: Run, name: str, tmp_path: Path) -> None:
    bucket.put("in/a")
    inputs = {"x": {"path": bucket.url("in")}, "model": {"path": bucket.url("in")}, name: {"path": bucket.url("no")}}
    with pytest.raises(
        AssertionError, match=rf"job\.yml.*/inputs/{name}/path: there is no object '{bucket.url('no')}'"
    ):
        run("[]", inputs=inputs, input_data="x")
    assert not (tmp_path / "out").exists()


def test_a_run_into_a_bucket_that_is_not_there_does_not_begin(bucket: Bucket, run: Run) -> None:
    bucket.put("in/a")
    with pytest.raises(AssertionError, match=r"no-such-bucket.*NoSuchBucket"):
        run("[]", "--output", "s3://no-such-bucket/out", inputs={"x": {"path": bucket.url("in")}})
