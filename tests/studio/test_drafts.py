"""Jobs are made and repeated on the page, and what a resume will do is said before the click."""

from __future__ import annotations

import gzip
import re
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.studio.chromium import Tab
from tests.studio.cluster import GOOD, TOKEN, Studio

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(300)]

BAD_INIT = "import nothing_of_this_name\ndef run(mini_batch): ...\n"


def test_a_document_is_checked_as_it_is_typed_and_submitted(opened: Tab, shown: Studio) -> None:
    page = opened.page
    files, code = shown.cluster.files(4), shown.cluster.code(GOOD)
    opened.open("/jobs")
    page.get_by_role("link", name="New job").click()
    document = page.get_by_label("Document of the job, as YAML")
    document.fill(f"entry_script: entry.py\ncode: {code}\ninputs: {{data: {files}}}\nmini_batch_sise: 2\n")
    page.get_by_role("alert").get_by_text("mini_batch_sise").first.wait_for()
    assert page.get_by_role("button", name="Submit").is_disabled()

    document.fill(f"entry_script: entry.py\ncode: {code}\ninputs: {{data: {files}}}\nmini_batch_size: 2\n")
    page.get_by_label("Name", exact=True).fill("made here")
    page.get_by_text("The server would accept this parallel job").wait_for()
    assert opened.violations() == []
    page.get_by_role("button", name="Read the first rows").click()
    page.locator(".input-preview", has_text=re.compile(r"\d files?;.*run\(\) gets")).wait_for()
    page.get_by_role("button", name="Submit").click()
    page.get_by_role("heading", name="made here").wait_for()
    page.get_by_text("4 items gave 4 rows").wait_for()


def test_a_draft_shows_what_run_would_get_of_its_data_before_anything_runs(opened: Tab, shown: Studio) -> None:
    files, code = shown.cluster.home / "drafted", shown.cluster.code(GOOD)
    files.mkdir()
    (files / "a.csv").write_text("id;zip\n1;00501\n")
    (files / "b.csv.gz").write_bytes(gzip.compress("id;zip\n2;00502\n".encode("utf-16")))
    (files / "_SUCCESS").touch()
    page = opened.page
    opened.open("/new")
    page.get_by_text("the server checks what you write").wait_for()
    assert page.get_by_role("alert").count() == 0, "nobody has written anything yet"
    document = page.get_by_label("Document of the job, as YAML")
    document.fill(f"entry_script: entry.py\ncode: {code}\ninputs: {{data: {files}}}\n")
    page.get_by_text("The server would accept this parallel job").wait_for()
    page.get_by_role("button", name="Read the first rows").click()
    preview = page.locator(".input-preview")
    for text in (
        "run() gets paths of files", 'transformations: [{"read_delimited":{"delimiter":";"}}]', "utf-16-le (1 file)",
        "gzip (1 file)", "types from the first rows of", "and 1 more", "_SUCCESS", "zip (str)", "'00502'",
    ):  # fmt: skip
        preview.get_by_text(text).first.wait_for()


def test_a_small_folder_of_code_is_sent_and_the_plan_is_told_before_the_job_runs(
    opened: Tab, shown: Studio, tmp_path: Path
) -> None:
    page = opened.page
    files, code = shown.cluster.files(6), tmp_path / "code"
    (code / "__pycache__").mkdir(parents=True)
    (code / "entry.py").write_text("from helper import named\ndef run(mini_batch):\n    return named(mini_batch)\n")
    (code / "helper.py").write_text("def named(mini_batch):\n    return [str(each) for each in mini_batch]\n")
    (code / "__pycache__" / "left.out").write_text("")
    opened.open("/new")
    document = page.get_by_label("Document of the job, as YAML")
    document.fill(f"name: sent\nentry_script: entry.py\ncode: /none\ninputs: {{data: {files}}}\nmini_batch_size: 2\n")
    page.get_by_label("Code from this machine").set_input_files(code)
    page.get_by_text("2 files sent").wait_for()
    page.get_by_text("The server would accept this parallel job").wait_for()
    assert "code: azureml:code/" in document.input_value()
    page.get_by_role("button", name="Count its mini-batches").click()
    plan = page.locator(".plan").inner_text()
    assert re.search(
        r"Mini-batches\s+3, of 6 files\s+Workers\s+2 on 1 node\s+Expected time\s+Not known before some", plan
    ), plan
    assert opened.violations() == []
    page.get_by_role("button", name="Submit").click()
    page.get_by_role("heading", name="sent").wait_for()
    page.get_by_text("6 items gave 6 rows").wait_for()

    job = page.url.rpartition("/")[2]
    opened.open(f"/new?from={job}")
    page.get_by_role("button", name="Count its mini-batches").click()
    page.locator(".plan", has_text=re.compile("About .* if a mini-batch takes as long as it did before")).wait_for()


def test_a_job_is_run_again_with_changes_and_the_code_that_it_had(opened: Tab, shown: Studio) -> None:
    page = opened.page
    job = shown.cluster.submit(GOOD, inputs=shown.cluster.files(60), name="to repeat", mini_batch_size=1)
    shown.cluster.result(job)
    opened.open(f"/jobs/{job}")
    page.get_by_role("link", name="Run again …").click()
    page.get_by_text("None: it would be the same job once more.").wait_for()
    page.get_by_label("Mini-batch size").fill("30")
    page.locator(".diff .gone", has_text="mini_batch_size: 1").wait_for()
    page.locator(".diff .new", has_text="mini_batch_size: 30").wait_for()
    page.get_by_text("The server would accept this parallel job").wait_for()
    page.get_by_role("button", name="Submit").click()
    page.get_by_role("heading", name="to repeat").wait_for()
    opened.until("id => !location.pathname.endsWith(id)", job)
    page.get_by_text("60 items gave 60 rows").wait_for()


def test_a_resume_that_must_fail_again_says_so(opened: Tab, shown: Studio) -> None:
    page = opened.page
    job = shown.cluster.submit(BAD_INIT, inputs=shown.cluster.files(4), name="has a typo")
    shown.cluster.result(job)
    opened.open(f"/jobs/{job}")
    page.get_by_role("button", name="Resume").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_text("that must happen again").wait_for()
    dialog.get_by_role("link", name="Run again, with changes").click()
    page.get_by_label(re.compile("Take over what that job has done")).wait_for()
    assert page.get_by_label(re.compile("Take over what that job has done")).is_checked()


def document(shown: Studio, job: str) -> dict[str, Any]:
    answer = httpx.get(f"{shown.url}/v1/jobs/{job}/document", headers={"Authorization": f"Bearer {TOKEN}"}, timeout=60)
    content: dict[str, Any] = answer.raise_for_status().json()
    return content


def test_a_document_of_a_job_names_its_code_and_no_secret(shown: Studio) -> None:
    secret = {"environment_variables": {"KEY": "of-nobody"}}
    job = shown.cluster.submit(GOOD, inputs=shown.cluster.files(1), name="with a secret", **secret)
    inner = {"steps": {"say": {"type": "command", "job": {"command": "echo hello", **secret}, "script": ""}}}
    steps: dict[str, Any] = {"inner": {"type": "pipeline", "job": inner}}
    for each in (job, shown.cluster.submit_pipeline(GOOD, steps, name="with a secret in a step")):
        content = document(shown, each)
        assert "of-nobody" not in content["text"]
        assert "code: azureml:code/" in content["text"]
        assert content["left_out"] == ["environment_variables"]
        shown.cluster.result(each)
