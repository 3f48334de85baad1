"""Outputs with a header, as JSON lines and as Parquet, from real jobs whose workers are killed on the way."""

from __future__ import annotations

import json
import os
import textwrap
from collections.abc import Iterator

import pyarrow.parquet
import pytest

from parallelrun_core.wire.states import JobState
from tests.cluster import Cluster

pytestmark = pytest.mark.integration

SCRIPT = textwrap.dedent("""
    import os, signal
    import pandas as pd
    def run(mini_batch):
        number = int(os.path.basename(mini_batch[0])[5:12])
        mark = os.path.join(os.environ["MARKS"], f"{os.environ['AZUREML_RUN_ID']}-{number}")
        if number % 5 == 3 and not os.path.exists(mark):
            open(mark, "w").close()
            os.kill(os.getpid(), signal.SIGKILL)
        table = pd.DataFrame({"file": [os.path.basename(path) for path in mini_batch], "score": number})
        return table.assign(score=number + 0.5) if number % 2 else table
""")
NAMES = [f"file-{number:07d}.txt" for number in range(20)]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(nodes=2, slots=2) as running:
        (running.home / "marks").mkdir()
        yield running


@pytest.mark.parametrize("name", ["out.parquet", "out.jsonl", "out.csv"])
def test_each_row_is_there_once_in_order_though_workers_are_killed(cluster: Cluster, name: str) -> None:
    job = cluster.submit(
        SCRIPT, inputs=cluster.files(20), mini_batch_size=1, append_row_file_name=name, append_row_separator=",",
        append_row_dataframe_header=True, environment_variables={"MARKS": str(cluster.home / "marks")},
    )  # fmt: skip
    result = cluster.result(job)
    assert result.state is JobState.COMPLETED, result.failure
    assert result.progress.retried == 4
    assert result.warnings == []
    assert os.path.basename(result.output) == name
    scores = [number + 0.5 if number % 2 else number for number in range(20)]
    if name == "out.parquet":
        assert pyarrow.parquet.read_table(result.output).to_pydict() == {"file": NAMES, "score": scores}
    elif name == "out.jsonl":
        rows = [json.loads(line) for line in cluster.output(result)]
        assert rows == [{"file": file, "score": score} for file, score in zip(NAMES, scores, strict=True)]
    else:
        lines = [f"{file},{score}" for file, score in zip(NAMES, scores, strict=True)]
        assert cluster.output(result) == ["file,score", *lines]


def test_line_breaks_and_shortened_arrays_inside_rows_are_told(cluster: Cluster) -> None:
    text = "import numpy\ndef run(mini_batch):\n    return [f'{path}\\nand more' for path in mini_batch]"
    script = f"{text} + [numpy.zeros(2000)]\n"
    result = cluster.result(job := cluster.submit(script, inputs=cluster.files(20), mini_batch_size=20))
    assert result.state is JobState.COMPLETED
    assert len(cluster.output(result)) == 41
    told = (cluster.folder(job).logs / "job_result.txt").read_text()
    assert "Warning: Rows hold 20 line breaks, so the output has more lines than rows" in told
    assert "Warning: 1 row holds an array of which the text leaves out values ('...'); an output" in told
    safe = cluster.result(cluster.submit(text, inputs=cluster.files(20), append_row_safe_output=True))
    assert len(cluster.output(safe)) == 20
    assert safe.warnings == []
