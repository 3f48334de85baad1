"""Tables through a whole cluster: every row once, in order, whatever their format, their cut, and what dies."""

from __future__ import annotations

import csv
import json
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

from parallelrun_core.folder.records import JobResult
from parallelrun_core.wire.states import JobState
from tests.cluster import Cluster
from tests.integration.test_reopen import reopen

pytestmark = pytest.mark.integration

ROWS = 3000
ECHO = textwrap.dedent("""
    def run(mini_batch, context):
        assert list(mini_batch.index) == list(range(len(mini_batch))) and len(mini_batch)
        return [f"{row.number}|{row.text}" for row in mini_batch.itertuples()]
""")

DYING_TWICE = textwrap.dedent("""
    import os, signal
    echo = run
    def run(mini_batch, context):
        if context.minibatch_index in (3, 7):
            try:
                os.close(os.open(f"{os.environ['ONCE']}-{context.minibatch_index}", os.O_CREAT | os.O_EXCL))
                os.kill(os.getpid(), signal.SIGKILL)
            except FileExistsError:
                pass
        return echo(mini_batch, context)
""")
"""Follows a script: its worker dies at the first try of two mini-batches, `ONCE` is where it remembers that."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(nodes=2, slots=1) as running:
        yield running


def text_of(number: int) -> str:
    return f"line {number}, of text\nand another" if number % 3 == 0 else f'quoted "{number}"'


def as_csv(path: Path, rows: range = range(ROWS)) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["number", "text"])
        writer.writerows([number, text_of(number)] for number in rows)
    return path


def expected(rows: range = range(ROWS)) -> list[str]:
    return "\n".join(f"{number}|{text_of(number)}" for number in rows).split("\n")


def completed(cluster: Cluster, job: str) -> JobResult:
    result = cluster.result(job)
    assert result.state is JobState.COMPLETED, result.failure
    return result


MULTI_LINE = [{"read_delimited": {"support_multi_line": True}}]


def test_a_table_with_newlines_in_quotes_is_split_and_comes_back_whole(cluster: Cluster) -> None:
    path = as_csv(cluster.home / "multi" / "a.csv")
    inputs: dict[str, object] = {"data": {"path": str(path.parent), "transformations": MULTI_LINE}}
    job = cluster.submit(ECHO, inputs=inputs, mini_batch_size="4kb")
    result = completed(cluster, job)
    assert cluster.output(result) == expected()
    overview = "".join(file.read_text() for file in cluster.folder(job).logs.glob("job_progress_overview.*.txt"))
    assert re.search(rf"mini-batches with {ROWS:,} rows\b", overview)  # which were found where it was cut
    assert result.progress.scheduled > 10
    assert (result.progress.items_scheduled, result.progress.items_done) == (ROWS, ROWS)


@pytest.mark.parametrize("mini_batch_format, returned", [
    ("arrow", "mini_batch.select(['number', 'text'])"),
    ("pandas_pyarrow", "mini_batch"),
    ("polars", "mini_batch"),
])  # fmt: skip
def test_a_table_is_handed_over_and_returned_in_the_form_that_the_job_says(
    cluster: Cluster, mini_batch_format: str, returned: str
) -> None:
    if mini_batch_format == "polars":
        pytest.importorskip("polars")
    path = as_csv(cluster.home / mini_batch_format / "a.csv")
    inputs: dict[str, object] = {"data": {"path": str(path.parent), "transformations": MULTI_LINE}}
    script = f"def run(mini_batch):\n    assert len(mini_batch)\n    return {returned}\n"
    job = cluster.submit(
        script, inputs=inputs, mini_batch_size="20kb", mini_batch_format=mini_batch_format,
        append_row_file_name="rows.jsonl",
    )  # fmt: skip
    rows = [json.loads(line) for line in cluster.output(completed(cluster, job))]
    assert rows == [{"number": number, "text": text_of(number)} for number in range(ROWS)]


@pytest.mark.parametrize("string_dtype, dtype, null", [("pandas", "str", "nan"), ("object", "object", "None")])
def test_texts_of_a_table_have_the_dtype_that_the_job_says(
    cluster: Cluster, string_dtype: str, dtype: str, null: str
) -> None:
    if str(pd.Series([""]).dtype) != "str":
        pytest.skip("this pandas makes objects of texts")
    folder = cluster.home / f"texts-{dtype}"
    folder.mkdir()
    (folder / "a.csv").write_text("number,text\n1,x\n2,\n")
    inputs: dict[str, object] = {"data": {"path": str(folder), "transformations": ["read_delimited"]}}
    script = "def run(mini_batch):\n    return [f'{mini_batch.text.dtype} {text}' for text in mini_batch.text]\n"
    job = cluster.submit(script, inputs=inputs, string_dtype=string_dtype)
    assert cluster.output(completed(cluster, job)) == [f"{dtype} x", f"{dtype} {null}"]


def test_a_file_of_type_mltable_is_read_as_the_job_says(cluster: Cluster) -> None:
    path = as_csv(cluster.home / "source" / "a.csv")
    inputs: dict[str, object] = {"data": {"path": str(path), "type": "mltable", "transformations": MULTI_LINE}}
    assert cluster.output(completed(cluster, cluster.submit(ECHO, inputs=inputs))) == expected()


def test_a_run_that_expects_a_table_but_gets_paths_is_told_the_step(cluster: Cluster) -> None:
    path = as_csv(cluster.home / "paths" / "a.csv")
    script = "def run(mini_batch):\n    return [row for _, row in mini_batch.iterrows()]\n"
    result = cluster.result(cluster.submit(script, inputs={"data": {"path": str(path)}}))
    assert result.failure is not None
    assert "transformations: [read_delimited]" in result.failure.hint


def test_a_worker_that_dies_in_the_middle_loses_no_row(cluster: Cluster) -> None:
    path = as_csv(cluster.home / "dying" / "a.csv")
    inputs: dict[str, object] = {"data": {"path": str(path.parent), "transformations": MULTI_LINE}}
    once = {"ONCE": str(cluster.home / "once")}
    job = cluster.submit(ECHO + DYING_TWICE, inputs=inputs, mini_batch_size="rows:200", environment_variables=once)
    result = completed(cluster, job)
    assert cluster.output(result) == expected()
    assert result.progress.retried == 2
    assert result.progress.scheduled == ROWS // 200


def test_ranges_without_a_record_never_reach_run(cluster: Cluster) -> None:
    folder = cluster.home / "sparse"
    folder.mkdir()
    (folder / "data.csv").write_text("number,text\n" + "".join(f"{n},{'x' * 80}\n" for n in range(2, 40)))
    (folder / "MLTable").write_text("type: mltable\npaths:\n- file: ./data.csv\ntransformations:\n- read_delimited\n")
    inputs: dict[str, object] = {"data": {"path": str(folder), "type": "mltable", "mode": "direct"}}
    job = cluster.submit(ECHO, inputs=inputs, mini_batch_size=50, allowed_failed_percent=0)
    result = completed(cluster, job)
    assert cluster.output(result) == [f"{n}|{'x' * 80}" for n in range(2, 40)]
    size = (folder / "data.csv").stat().st_size
    assert result.progress.scheduled == -(-size // 50)
    assert result.progress.empty == result.progress.scheduled - 38


def test_files_are_joined_by_their_keys_which_the_context_tells(cluster: Cluster) -> None:
    folder = cluster.home / "keyed"
    for user, genre, name in [("u2", "a", "1"), ("u1", "b", "2"), ("u1", "a", "3"), ("u1", "b", "4")]:
        (folder / user / genre).mkdir(parents=True, exist_ok=True)
        (folder / user / genre / f"{name}.txt").touch()
    script = textwrap.dedent("""
        import os
        def run(mini_batch, context):
            names = ",".join(os.path.basename(path) for path in mini_batch)
            return [f"{context.partition_key_value} {names}"] * len(mini_batch)
    """)
    steps = [{"extract_columns_from_partition_format": {"partition_format": "{user}/{genre}/{name}.txt"}}]
    inputs: dict[str, object] = {"data": {"path": str(folder), "transformations": steps}}
    result = completed(cluster, cluster.submit(script, inputs=inputs, partition_keys=["genre", "user"]))
    assert cluster.output(result) == [
        "{'genre': 'a', 'user': 'u1'} 3.txt",
        "{'genre': 'a', 'user': 'u2'} 1.txt",
        *["{'genre': 'b', 'user': 'u1'} 2.txt,4.txt"] * 2,
    ]


def test_tables_by_keys_have_the_key_columns_behind_the_data(cluster: Cluster) -> None:
    for store in ("1006", "2"):
        for brand in ("a", "b.c"):
            as_csv(cluster.home / "stores" / store / brand / "data.csv", range(5))
    script = textwrap.dedent("""
        def run(mini_batch, context):
            columns = [*mini_batch.columns, repr(mini_batch.store[0]), len(mini_batch)]
            return [f"{context.partition_key_value} {columns}"] + [""] * (len(mini_batch) - 1)
    """)
    steps = [*MULTI_LINE, {"extract_columns_from_partition_format": "{store}/{brand}/*.csv"}]
    inputs: dict[str, object] = {"data": {"path": str(cluster.home / "stores"), "transformations": steps}}
    result = completed(cluster, cluster.submit(script, inputs=inputs, partition_keys=["store"]))
    assert [line for line in cluster.output(result) if line] == [
        f"{{'store': '{store}'}} ['number', 'text', 'store', 'brand', \"'{store}'\", 10]" for store in ("1006", "2")
    ]


def test_mini_batches_that_are_only_ranks(cluster: Cluster) -> None:
    script = "def run(mini_batch, context):\n    return [context.minibatch_index, len(mini_batch)]\n"
    result = completed(cluster, cluster.submit(script, inputs={}, rank_mini_batch_count=4))
    assert cluster.output(result) == ["0", "0", "1", "0", "2", "0", "3", "0"]
    assert (result.progress.items_scheduled, result.progress.items_failed) == (4, 0)


def test_what_is_wrong_with_a_table_fails_the_job_with_its_place(cluster: Cluster) -> None:
    folder = cluster.home / "wrong"
    folder.mkdir()
    (folder / "MLTable").write_text("paths:\n- file: ./a.csv\ntransformations:\n- read_delimitted\n")
    inputs: dict[str, object] = {"data": {"path": str(folder), "type": "mltable"}}
    result = cluster.result(cluster.submit(ECHO, inputs=inputs))
    assert result.failure is not None
    assert result.failure.code == "INVALID_INPUT"
    assert "/transformations/0/read_delimitted" in result.failure.summary
    assert "did you mean 'read_delimited'?" in result.failure.summary


def test_invalid_keys_are_named(cluster: Cluster) -> None:
    steps = [{"extract_columns_from_partition_format": "{user}/{genre}/{name}.txt"}]
    inputs: dict[str, object] = {"data": {"path": str(cluster.home), "transformations": steps}}
    result = cluster.result(cluster.submit(ECHO, inputs=inputs, partition_keys=["user", "colour"]))
    assert result.failure is not None
    assert "invalid keys of input 'data': colour (its keys are user, genre, name)" in result.failure.summary


def test_text_in_another_encoding_is_told_and_not_guessed(cluster: Cluster) -> None:
    folder = cluster.home / "latin"
    folder.mkdir()
    (folder / "a.csv").write_bytes(b"number,text\n2,caf\xe9\n3,x\n")
    inputs: dict[str, object] = {"data": {"path": str(folder), "transformations": ["read_delimited"]}}
    result = cluster.result(cluster.submit(ECHO, inputs=inputs, run_max_try=1))
    assert result.failure is not None
    assert "INPUT_UNREADABLE" in result.failure.first_cause
    assert "set its encoding" in result.failure.first_cause
    inputs = {"data": {"path": str(folder), "transformations": [{"read_delimited": {"encoding": "latin1"}}]}}
    assert cluster.output(completed(cluster, cluster.submit(ECHO, inputs=inputs))) == ["2|café", "3|x"]


def test_downloaded_files_are_copies_with_their_names_that_go_when_run_is_over(cluster: Cluster) -> None:
    folder = cluster.home / "far" / "deep"
    folder.mkdir(parents=True)
    for number in range(6):
        (folder / f"{number}.txt").write_text(str(number))
    script = textwrap.dedent("""
        import os
        before = []
        def run(mini_batch):
            assert not any(map(os.path.exists, before)), before
            before[:] = mini_batch
            assert all(os.path.dirname(path).startswith(os.getcwd()) for path in mini_batch)
            return [f"{path.rpartition('/deep/')[2]} {open(path).read()}" for path in mini_batch]
    """)
    inputs: dict[str, object] = {"data": {"path": str(cluster.home / "far"), "mode": "download"}}
    result = completed(cluster, cluster.submit(script, inputs=inputs, mini_batch_size=2))
    assert cluster.output(result) == [f"{number}.txt {number}" for number in range(6)]


STUBBORN = ECHO + textwrap.dedent("""
    import os, time
    echo = run
    def run(mini_batch, context):
        number = context.minibatch_index
        if number == 3 and os.path.exists(os.environ["BROKEN"]):
            raise ValueError("not today")
        while number > 8 and os.path.exists(os.environ["WAITS"]):
            time.sleep(0.02)
        return echo(mini_batch, context)
""")


def test_a_table_that_was_broken_off_goes_on_by_resume_and_by_retry(cluster: Cluster) -> None:
    path = as_csv(cluster.home / "reopened" / "a.csv")
    marks = {name: cluster.home / f"mark-{name}" for name in ("BROKEN", "WAITS")}
    for mark in marks.values():
        mark.touch()
    inputs: dict[str, object] = {"data": {"path": str(path.parent), "transformations": MULTI_LINE}}
    variables = {name: str(mark) for name, mark in marks.items()}
    settings = {"mini_batch_size": "rows:200", "run_max_try": 1, "environment_variables": variables}
    job = cluster.submit(STUBBORN, inputs=inputs, **settings)
    cluster.until(lambda: cluster.registry.status(job).progress.decided >= 9, "all are decided that don't wait")
    cluster.registry.move(job, JobState.CANCELED)
    assert cluster.result(job).state is JobState.CANCELED
    marks["WAITS"].unlink()
    reopen(cluster, job, retry_failed=False)
    resumed = completed(cluster, job)
    assert (resumed.progress.done, resumed.progress.failed) == (14, 1)
    marks["BROKEN"].unlink()
    reopen(cluster, job, retry_failed=True)
    result = completed(cluster, job)
    assert cluster.output(result) == expected()
    assert (result.progress.done, result.progress.items_done) == (15, ROWS)


def test_a_straggler_of_a_table_is_overtaken_by_its_twin(cluster: Cluster) -> None:
    script = ECHO + textwrap.dedent("""
        import os, time
        echo = run
        def run(mini_batch, context):
            if context.minibatch_index == 100:
                try:
                    os.close(os.open(os.environ["SLOW"], os.O_CREAT | os.O_EXCL))
                    time.sleep(300)
                except FileExistsError:
                    pass
            return echo(mini_batch, context)
    """)
    path = as_csv(cluster.home / "straggler" / "a.csv")
    inputs: dict[str, object] = {"data": {"path": str(path.parent), "transformations": MULTI_LINE}}
    slow = {"SLOW": str(cluster.home / "slow-table")}
    settings = {"mini_batch_size": "rows:20", "speculative_execution": True, "run_invocation_timeout": 600}
    job = cluster.submit(script, inputs=inputs, environment_variables=slow, **settings)
    result = cluster.result(job, timeout_s=100)
    assert result.state is JobState.COMPLETED, result.failure
    assert cluster.output(result) == expected()
    assert (result.progress.retried, result.progress.scheduled) == (0, 150)


def test_a_filter_on_a_column_that_is_not_there_fails_the_job_at_once(
    cluster: Cluster,
) -> None:
    path = as_csv(cluster.home / "mistaken" / "a.csv")
    steps = ["read_delimited", {"filter": 'col("nunber") > 3'}]
    inputs: dict[str, object] = {"data": {"path": str(path.parent), "transformations": steps}}
    result = cluster.result(cluster.submit(ECHO, inputs=inputs, mini_batch_size="1kb"))
    assert result.state is JobState.FAILED
    assert result.failure is not None
    assert result.failure.code == "INVALID_INPUT"
    assert "the filter names the column 'nunber'; there are number, text" in result.failure.summary
    assert (result.progress.scheduled, result.progress.retried) == (0, 0)


FOOTER = """
import os, sys
from parallelrun_core.mltable.formats.parquet import ReadParquet
from parallelrun_core.mltable.input_plan import InputPlan
from parallelrun_core.spec.fields import MiniBatchSize
from parallelrun_master.planning.formats.parquet import ParquetCutting
from parallelrun_master.planning.table_format import RowWindow
plan = InputPlan(name="data", kind="parquet", read=ReadParquet())
cutting = ParquetCutting(plan, MiniBatchSize.parse("10mb"), RowWindow(0, None))
(piece,) = cutting.pieces(os.fsencode(sys.argv[1]))
assert (piece.start, piece.end) == (0, 3)
assert "numpy" not in sys.modules, "a leader waits for it before the first mini-batch"
import numpy
assert numpy.zeros(2).size == 2
"""


def test_the_footer_of_a_parquet_file_is_read_without_numpy(tmp_path: Path) -> None:
    pd.DataFrame({"number": [1, 2, 3]}).to_parquet(tmp_path / "data.parquet")
    subprocess.run([sys.executable, "-c", FOOTER, str(tmp_path / "data.parquet")], check=True, timeout=60)
