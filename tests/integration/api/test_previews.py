"""`POST /v1/jobs:preview`: what run() would get is seen before a job is submitted, by the rules of its paths."""

from __future__ import annotations

import ast
import json
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from parallelrun.cli import main
from tests.integration.api.conftest import Site
from tests.integration.api.server import ApiServer
from tests.integration.test_files_of_the_world import EXACT

if TYPE_CHECKING:
    from redis import Redis

pytestmark = pytest.mark.integration


def shown(api: httpx.Client, document: dict[str, Any], **params: Any) -> dict[str, Any]:
    answer = api.post("/v1/jobs:preview", json=document, params=params, timeout=120)
    assert answer.status_code == 200, answer.text
    (item,) = answer.json()["items"]
    found: dict[str, Any] = item
    return found


def test_preview_of_a_folder_has_rows_types_and_the_step_that_was_found_out(api: httpx.Client, site: Site) -> None:
    (site.data / "one.txt").unlink()
    (site.data / "a.csv").write_text("id;name\n1;Ada\n2;\n")
    (site.data / "_SUCCESS").touch()
    found = shown(api, {"inputs": {"rows": {"path": str(site.data)}}}, rows=1)
    assert found["read"] == {"read_delimited": {"delimiter": ";"}}
    assert found["columns"][0] == {"name": "id", "type": "int64"}
    assert found["rows"] == [{"id": "1", "name": "'Ada'"}]
    assert (found["files"], found["is_complete"], found["encodings"]) == (1, True, {"utf-8": 1})
    assert "_SUCCESS" in found["warnings"][0]


def test_preview_of_a_whole_job_reads_as_the_job_says(api: httpx.Client, site: Site) -> None:
    (site.data / "one.txt").write_text("a|b\n007|x\n")
    step = {"read_delimited": {"delimiter": "|"}}
    document = site.spec(inputs={"rows": {"path": str(site.data), "transformations": [step]}})
    assert shown(api, document)["rows"] == [{"a": "'007'", "b": "'x'"}]
    paths = shown(api, site.spec(), guess=False)
    assert (paths["kind"], paths["first_files"]) == ("files", [str(site.data / "one.txt")])


@pytest.mark.parametrize("case", EXACT)
def test_preview_has_the_values_of_each_kind_of_file_as_the_command_line_has(
    api: httpx.Client, site: Site, capsys: pytest.CaptureFixture[str], case: str
) -> None:
    step, files, expected = EXACT[case]
    (site.data / "one.txt").unlink()
    for name, content in files.items():
        (site.data / name).write_bytes(content)
    by_rest = shown(api, {"inputs": {"data": {"path": str(site.data), "transformations": [step]}}})
    rows = [{name: text and str(ast.literal_eval(text)) for name, text in row.items()} for row in by_rest["rows"]]
    assert rows == expected[:20]
    assert main(["data", "preview", str(site.data), "--read", step, "-o", "json"]) == 0
    (by_command_line,) = json.loads(capsys.readouterr().out)
    assert by_command_line == by_rest


def test_preview_names_what_can_not_be_read(api: httpx.Client, site: Site) -> None:
    inputs = {"rows": {"path": str(site.data), "transformations": ["read_parquet"]}}
    assert str(site.data / "one.txt") in shown(api, {"inputs": inputs})["errors"][0]


@pytest.mark.parametrize(
    "path, message",
    [("/nothing/there", "there is no file or folder"), ("s3://bucket/rows", "object stores are not shown here")],
)
def test_preview_of_what_is_not_there_is_refused_with_its_place(api: httpx.Client, path: str, message: str) -> None:
    answer = api.post("/v1/jobs:preview", json={"inputs": {"rows": {"path": path}}})
    assert answer.status_code == 422
    (problem,) = answer.json()["errors"]
    assert problem["pointer"] == "/inputs/rows/path"
    assert message in problem["message"]


def test_preview_opens_no_file_that_jobs_may_not_read_and_is_on_record(
    redis_url: str, redis: Redis, tmp_path: Path
) -> None:
    secret, allowed, audit = tmp_path / "secret.csv", tmp_path / "data", tmp_path / "audit.log"
    secret.write_text("password\nhunter2\n")
    allowed.mkdir()
    (allowed / "a.csv").write_text("id\n1\n")
    (allowed / "b.csv").symlink_to(secret)
    options = ("--allowed-roots", str(allowed), "--audit-log", str(audit))
    with ApiServer(tmp_path / "root", redis_url, *options) as server, server.client() as api:
        for path in (tmp_path, allowed / "b.csv", allowed):
            answer = api.post("/v1/jobs:preview", json={"inputs": {"rows": {"path": str(path)}}})
            assert answer.status_code == 422, answer.text
            assert "hunter2" not in answer.text
    assert [json.loads(line)["did"] for line in audit.read_text().splitlines()] == ["preview_data"] * 3


def check_output_table(redis_url: str, root: Path, site: Site, *, without: str = "") -> None:
    """An output is shown where jobs are users of their own, and nothing that a link in its place leads to."""
    with ApiServer(root, redis_url, "--jobs-apart", without=without) as server, server.client() as api:
        made, other = (str(api.post("/v1/jobs", json=site.spec()).json()["id"]) for _ in range(2))
        outputs = [root / "jobs" / each / "outputs" for each in (made, other)]
        for folder in outputs:
            folder.mkdir(exist_ok=True)
        (outputs[0] / "a[1]*.csv").write_text("id\n7\n")
        (outputs[1] / "theirs.csv").write_text("secret\nhunter2\n")
        url = f"/v1/jobs/{made}/output-table"
        answer = api.get(url, params={"path": "a[1]*.csv"}, timeout=60)
        assert answer.json()["rows"] == [{"id": "7"}], answer.text
        (outputs[0] / "notes.txt").write_text("id\n7\n")
        no_table = api.get(url, params={"path": "notes.txt"}).json()
        assert (no_table["columns"], no_table["files"], no_table["total_rows"]) == ([], 1, 0)
        assert no_table.keys() == answer.json().keys()
        check_swapped(api, url, outputs[0], outputs[1] / "theirs.csv")
        wide = "n" * 400_000
        (outputs[0] / "wide.csv").write_text(f"{wide}\n" + 1000 * "1\n")
        answer = api.get(url, params={"path": "wide.csv", "rows": 1000}, timeout=60)
        assert (answer.status_code, len(answer.content) < 32 << 20) == (200, True)
        assert 0 < len(answer.json()["rows"]) < 100


def check_swapped(api: httpx.Client, url: str, outputs: Path, target: Path) -> None:
    """Ask for a file that is swapped for a link to another job's output, again and again."""
    is_over = threading.Event()
    mine, link, shown_one = outputs / "mine", outputs / "link", outputs / "swapped.csv"
    mine.write_text("id\n1\n")
    os.link(mine, shown_one)
    mine.unlink()

    def swap() -> None:
        while not is_over.is_set():
            link.symlink_to(target)
            link.replace(shown_one)
            mine.write_text("id\n1\n")
            mine.replace(shown_one)

    with ThreadPoolExecutor(1) as swapping:
        swaps = swapping.submit(swap)
        try:
            answers = [api.get(url, params={"path": "swapped.csv"}, timeout=60) for _ in range(6)]
        finally:
            is_over.set()
        swaps.result()
    assert not [each.text for each in answers if "hunter2" in each.text]


def test_output_table_shows_the_output_and_nothing_else(
    redis_url: str, redis: Redis, tmp_path: Path, site: Site
) -> None:
    check_output_table(redis_url, tmp_path / "root", site)


def test_preview_counts_mini_batches_of_the_size_that_the_draft_gives(api: httpx.Client, site: Site) -> None:
    (site.data / "one.txt").unlink()
    for number in range(23):
        (site.data / f"{number}.txt").write_text("x")
    document = {key: value for key, value in site.spec().items() if key != "mini_batch_size"}
    sizes: list[dict[str, Any]] = [{}, {"mini_batch_size": 4}, {"mini_batch_size": 100}, {"mini_batch_size": "auto"}]
    assert [shown(api, {**document, **size})["mini_batches"] for size in sizes] == [3, 6, 1, 3]
