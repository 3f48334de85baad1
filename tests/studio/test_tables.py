"""Outputs that are tables, as tables."""

from __future__ import annotations

from typing import Final

import httpx
import pytest

from tests.studio.chromium import NARROW, Tab
from tests.studio.cluster import TOKEN, Studio

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(300)]

WRITES: Final = """
import json, os
from azureml_user.parallel_run import EntryScript

def run(mini_batch):
    rows = [{"city": f"city {each % 7}", "sales": each * 3 % 50} for each in range(50)]
    folder = EntryScript().output_dir
    import fastavro
    fields = [{"name": "city", "type": "string"}, {"name": "sales", "type": "long"}]
    with open(os.path.join(folder, "rows.avro"), "wb") as file:
        fastavro.writer(file, {"type": "record", "name": "row", "fields": fields}, rows)
    import pyarrow, pyarrow.parquet
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), os.path.join(folder, "rows.parquet"))
    with open(os.path.join(folder, "rows.jsonl"), "w") as file:
        file.writelines(json.dumps(row) + chr(10) for row in rows)
    with open(os.path.join(folder, "rows.csv"), "w") as file:
        file.write("city,sales\\n")
        file.writelines(f"{row['city']},{row['sales']}\\n" for row in rows)
    with open(os.path.join(folder, "notes.txt"), "w") as file:
        file.write("city,sales are the columns")
    return mini_batch
"""


@pytest.fixture(scope="module")
def writes(shown: Studio) -> str:
    job = shown.cluster.submit(WRITES, inputs=shown.cluster.files(1), name="writes", mini_batch_size=1)
    shown.cluster.result(job)
    return job


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet", "avro"])
def test_tables_of_outputs_have_columns_with_types(shown: Studio, writes: str, kind: str) -> None:
    headers = {"Authorization": f"Bearer {TOKEN}"}
    url = f"{shown.url}/v1/jobs/{writes}/output-table?path=rows.{kind}&rows=10"
    answer = httpx.get(url, headers=headers, trust_env=False, timeout=90)
    assert answer.status_code == 200, answer.text
    table = answer.json()
    assert table["errors"] == []
    assert [column["name"] for column in table["columns"]] == ["city", "sales"]
    assert table["columns"][1]["type"] == "int64"
    assert len(table["rows"]) == 10
    assert table["total_rows"] == (50 if kind in {"parquet", "avro"} else None)
    every = httpx.get(url.replace("rows=10", "rows=100"), headers=headers, trust_env=False, timeout=90).json()
    assert every["total_rows"] == len(every["rows"]) == 50
    gone = httpx.get(url.replace(f"rows.{kind}", "../logs/readme.txt"), headers=headers, trust_env=False, timeout=90)
    assert gone.status_code in {400, 404, 422}


def test_tables_are_sorted_narrowed_and_drawn(opened: Tab, writes: str) -> None:
    page = opened.page
    opened.open(f"/jobs/{writes}/outputs?path=rows.parquet")
    table = page.get_by_role("region", name="Table", exact=True)
    table.get_by_role("button", name="sales").wait_for()
    assert table.locator("tbody tr").count() == 50
    table.get_by_text("int64").wait_for()
    table.get_by_role("button", name="sales").click()
    sales = [int(text) for text in table.locator("tbody td:nth-child(2)").all_inner_texts()]
    assert sales == sorted(sales)
    page.get_by_role("img", name="sales: 0 to 49").wait_for()
    page.get_by_text("50 rows, which are all").wait_for()
    page.get_by_label("Rows with").fill("City 3")
    page.get_by_text("7 rows of 50").wait_for()
    assert table.get_by_role("cell").nth(1).evaluate("each => getComputedStyle(each).textAlign") == "right"
    assert opened.violations() == []
    opened.resize(*NARROW)
    assert opened.overflow() <= 0
    opened.open(f"/jobs/{writes}/outputs?path=notes.txt")
    page.get_by_role("region", name="Beginning of the file").get_by_text("city,sales are the columns").wait_for()
