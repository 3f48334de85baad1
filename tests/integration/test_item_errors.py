"""An item for which run() returns an ItemError has failed alone: no row, no other try, and its neighbours count."""

from __future__ import annotations

import csv
import os
import textwrap

import pytest

from parallelrun_core.folder.decisions import read_decisions
from parallelrun_core.wire.states import JobState
from tests.cluster import Cluster

pytestmark = pytest.mark.integration

ROWS = textwrap.dedent("""
    import os
    from parallelrun.script import ItemError
    def rows_of(mini_batch):
        names = [os.path.basename(path) for path in mini_batch]
        return [ItemError(f"no text in {name}") if name[-5] in "37" else name for name in names]
    def run(mini_batch):
        return rows_of(mini_batch)
""")
AWAITED = ROWS.replace("def run(", "async def run(")
STREAMED = ROWS + textwrap.dedent("""
    ended = {}
    def enqueue(mini_batch, mini_batch_context):
        rows = rows_of(mini_batch)
        ended[mini_batch_context.minibatch_index] = {"ret": rows, "mini_batch_context": None, "exception": None}
    def check_all_tasks_processed():
        return not ended
    def get_processing_batch_number():
        return len(ended)
    def get_finished_batch_result():
        results = dict(ended)
        ended.clear()
        return results
""")
A_TABLE = ROWS.replace(
    "return rows_of(mini_batch)", "import pandas; return pandas.DataFrame({'a': rows_of(mini_batch)})"
)
WRONG = ROWS.replace("return rows_of(mini_batch)", "return rows_of(mini_batch)[3:4]")


def names(count: int) -> list[str]:
    return [f"file-{number:07d}.txt" for number in range(count)]


@pytest.mark.parametrize(
    "source, settings",
    [
        (ROWS, {}),
        (A_TABLE, {}),
        (AWAITED, {"mini_batches_in_flight": 4}),
        (ROWS, {"mini_batches_in_flight": 4, "in_flight": "threads"}),
        (STREAMED, {"mini_batches_in_flight": 4, "in_flight": "streaming"}),
    ],
    ids=["rows", "table", "awaited", "threads", "streaming"],
)
def test_item_errors_cost_their_items_alone(source: str, settings: dict[str, object]) -> None:
    with Cluster(nodes=1, slots=2) as cluster:
        job = cluster.submit(source, inputs=cluster.files(40), mini_batch_size=10, **settings)
        result = cluster.result(job)
        assert result.state is JobState.COMPLETED
        assert cluster.output(result) == [name for name in names(40) if name[-5] not in "37"]
        assert (result.progress.items_done, result.progress.items_failed) == (32, 8)
        assert {each.tries for each in read_decisions(cluster.folder(job).path)} == {1}
        with (cluster.folder(job).logs / "failed_items.csv").open(newline="") as file:
            listed = [*csv.reader(file)][1:]
        assert sorted(row[0].rpartition("/")[2] for row in listed) == [n for n in names(40) if n[-5] in "37"]
        assert all("no text in file-" in ",".join(row) for row in listed)


def test_item_errors_in_a_table_fail_their_rows_by_name() -> None:
    source = textwrap.dedent("""
        from parallelrun.script import ItemError
        def run(mini_batch):
            table = mini_batch.astype(object)
            table.loc[table["id"].isin([3, 17]), "text"] = ItemError("no such page")
            return table
    """)
    with Cluster(nodes=1, slots=2) as cluster:
        table = cluster.home / "rows.csv"
        table.write_text("id,text\n" + "".join(f"{number},t{number}\n" for number in range(20)))
        data = {"path": str(table), "transformations": [{"read_delimited": {}}]}
        job = cluster.submit(source, inputs={"data": data}, mini_batch_size="rows:10")
        result = cluster.result(job)
        assert [line.split()[0] for line in cluster.output(result)] == [str(n) for n in range(20) if n not in (3, 17)]
        with (cluster.folder(job).logs / "failed_items.csv").open(newline="") as file:
            listed = [*csv.reader(file)][1:]
        assert sorted((row[0].partition(" of ")[0], row[1]) for row in listed) == [("row 4", "0"), ("row 8", "1")]
        assert all("no such page" in ",".join(row) for row in listed)


def test_item_errors_that_nobody_can_assign_fail_the_mini_batch() -> None:
    with Cluster(nodes=1, slots=1) as cluster:
        job = cluster.submit(
            WRONG, inputs=cluster.files(10), mini_batch_size=10, run_max_try=1, on_failure="mini_batch"
        )
        cluster.result(job)
        [outcome] = read_decisions(cluster.folder(job).path)
        assert outcome.failure is not None
        assert outcome.failure.category == "BAD_RETURN"
        assert "it must return one value for each item" in outcome.failure.message


def test_item_errors_with_a_name_that_is_not_utf_8_cost_their_items_alone() -> None:
    source = textwrap.dedent("""
        import os
        from parallelrun.script import ItemError
        def run(mini_batch):
            return [os.path.basename(path) if path.isascii() else ItemError(path) for path in mini_batch]
    """)
    with Cluster(nodes=1, slots=1) as cluster:
        inputs = cluster.files(3)
        (inputs / os.fsdecode(b"caf\xe9.txt")).touch()
        result = cluster.result(cluster.submit(source, inputs=inputs, mini_batch_size=4, run_max_try=1))
        assert cluster.output(result) == names(3)
        assert (result.progress.items_done, result.progress.items_failed) == (3, 1)
