"""The logs of all workers as one, by time; one's own first, the engine's folded, none that is empty."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import httpx
import pytest

from parallelrun import Client
from tests.studio.chromium import NARROW, Tab
from tests.studio.cluster import TOKEN, Studio

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(300)]

TALKS: Final = """
import logging, os, pathlib, time
from azureml_user.parallel_run import EntryScript

BEGUN = pathlib.Path("FOLDER")

def init():
    (BEGUN / str(os.getpid())).touch()
    end = time.monotonic() + 120
    while len(list(BEGUN.iterdir())) < 2:  # until both workers are there
        if time.monotonic() > end:
            raise TimeoutError("there is only one worker")
        time.sleep(0.02)
    print("begun")  # whichever worker has the mini-batches, both say something

def run(mini_batch):
    name = pathlib.Path(str(mini_batch[0])).name
    print("printed of", name)
    logging.warning("rooted of %s", name)
    EntryScript().logger.error("logged of %s", name)
    return [name]
"""


def until(page: Page, is_so: Callable[[], bool]) -> None:
    """Wait until something is so on a page, for at most a minute."""
    for _ in range(600):
        if is_so():
            return
        page.wait_for_timeout(100)
    raise AssertionError(page.locator("main, .page").first.inner_text())


@pytest.fixture(scope="module")
def talks(shown: Studio) -> str:
    """A job of two workers, each of which prints. It has both slots: other jobs would have one of them for long."""
    with Client(shown.url, token=TOKEN) as client:
        for other in client.jobs.list():
            if not other.has_ended:
                client.jobs.cancel(other.id)
                shown.cluster.result(other.id)
    begun = shown.cluster.home / "talks-begun"
    begun.mkdir()
    script = TALKS.replace("FOLDER", str(begun))
    job = shown.cluster.submit(script, inputs=shown.cluster.files(8), name="talks", mini_batch_size=1)
    shown.cluster.result(job, timeout_s=180)
    return job


def test_logs_of_all_workers_are_merged_by_time_and_filtered(opened: Tab, shown: Studio, talks: str) -> None:
    headers = {"Authorization": f"Bearer {TOKEN}"}
    page = httpx.get(f"{shown.url}/v1/jobs/{talks}/merged-logs", headers=headers, trust_env=False, timeout=60).json()
    lines = page["items"]
    assert len(lines) == 26
    assert all(each["has_time"] for each in lines)
    assert [each["text"] for each in lines if each["mini_batch"] is None] == ["begun", "begun"]
    assert [each["at"] for each in lines] == sorted(each["at"] for each in lines)
    assert len({each["process"] for each in lines}) == 2
    of_third = [each["text"] for each in lines if each["mini_batch"] == 3]
    assert len(of_third) == 3
    name = of_third[0].split()[-1]
    assert set(of_third) == {f"printed of {name}", f"WARNING:root:rooted of {name}", f"logged of {name}"}

    view = opened.page
    opened.open(f"/jobs/{talks}/logs")
    view.get_by_role("link", name="All workers by time").click()
    rows = view.locator(".merged li")
    until(view, lambda: rows.count() == 26)
    assert opened.violations() == []
    view.get_by_role("button", name="Errors").click()
    until(view, lambda: rows.count() == 8)
    assert all("logged of" in text for text in rows.all_inner_texts())
    view.get_by_role("button", name="All", exact=True).click()
    view.get_by_label("Worker", exact=True).select_option("node000/process001")
    by_it = sum(each["process"] == "process001" for each in lines)
    until(view, lambda: rows.count() == by_it)
    assert set(view.locator(".merged .who").all_inner_texts()) == {"node000/process001"}
    opened.open(f"/jobs/{talks}/logs?merged=1&mini_batch=3")
    until(view, lambda: rows.count() == 3)
    view.get_by_role("button", name="And the engine's").click()
    view.locator(".merged li", has_text=re.compile("Mini-batch 3")).first.wait_for()
    opened.resize(*NARROW)
    assert opened.overflow() <= 0


def test_ones_own_logs_come_first_and_empty_ones_are_not_listed(opened: Tab, talks: str) -> None:
    opened.open(f"/jobs/{talks}/logs")
    logs = opened.page.get_by_role("navigation", name="Logs")
    logs.get_by_text("process000.stdout.txt", exact=True).first.wait_for()
    assert not logs.get_by_text("master_role.1.txt").is_visible()
    assert "process000.stderr.txt" not in logs.inner_text()  # nothing was written to it
    logs.get_by_text("The engine's own").click()
    assert logs.get_by_text("master_role.1.txt").is_visible()
