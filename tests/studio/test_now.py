"""What runs now: drawn in the timeline, named where nothing does, and told of each mini-batch."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import httpx
import pytest

from tests.studio.chromium import Tab
from tests.studio.cluster import TOKEN, Studio

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(300)]

HANGS: Final = """
import os, pathlib, time

def init():
    time.sleep(0.2)

def run(mini_batch):
    time.sleep(0.05)
    name = pathlib.Path(str(mini_batch[0])).name
    if name.endswith("5.txt"):
        while not os.path.exists(os.environ["PARALLELRUN_TEST_GO_ON"]):
            time.sleep(0.1)
    return [name for each in mini_batch]
"""


@pytest.fixture(scope="module")
def hanging(shown: Studio) -> Iterator[str]:
    """A job whose mini-batch 5 runs until its test is over; one of its two workers has nothing to do then."""
    flag = shown.cluster.home / "go-on"
    code = HANGS.replace('os.environ["PARALLELRUN_TEST_GO_ON"]', repr(str(flag)))
    job = shown.cluster.submit(code, inputs=shown.cluster.files(12), name="hangs", mini_batch_size=1)
    shown.cluster.until(lambda: shown.cluster.registry.status(job).progress.done == 11, "all others are done", 90)
    yield job
    flag.touch()
    shown.cluster.result(job)


def test_a_try_that_runs_now_is_in_the_timeline_with_its_worker_and_since_when(
    opened: Tab, shown: Studio, hanging: str
) -> None:
    page = opened.page
    opened.open(f"/jobs/{hanging}/timeline")
    row = page.get_by_role("region", name="Tries that run now").locator("tbody tr")
    row.get_by_text("in run()").wait_for()
    assert row.count() == 1
    assert re.match(r"node000/process00\d", row.locator("td").nth(1).inner_text())
    page.get_by_text("1 worker in run()").wait_for()

    canvas = page.locator(".timeline canvas")
    box = canvas.bounding_box()
    assert box is not None
    told = []
    for lane in range(2):
        page.mouse.move(box["x"] + box["width"] - 3, box["y"] + 24 * lane + 12)
        told.append(page.locator(".timeline .readout").inner_text())
    assert any(re.search(r"mini-batch 5 has been in run\(\) for \d", each) for each in told), told
    assert any(re.search("idle: no mini-batch to run|the worker has ended", each) for each in told), told
    assert re.search(r"\d\d:\d\d.* UTC", page.locator(".ticks").inner_text())
    assert opened.violations() == []

    headers = {"Authorization": f"Bearer {TOKEN}"}
    lanes = httpx.get(f"{shown.url}/v1/jobs/{hanging}/timeline", headers=headers, trust_env=False, timeout=60).json()[
        "lanes"
    ]
    assert len(lanes) == 2
    assert "running" in [lane["now"]["doing"] for lane in lanes if lane["now"]]


def test_a_mini_batch_that_runs_says_since_when_where_and_in_which_line(opened: Tab, hanging: str) -> None:
    page = opened.page
    opened.open(f"/jobs/{hanging}/mini-batches?state=running")
    page.locator("table.mini-batches tr", has_text="process00").wait_for()
    page.locator("table.mini-batches a.row").click()
    now = page.locator(".now")
    now.get_by_text(re.compile(r"in run\(\) for .* times the median of .* node000/process00\d")).wait_for()
    now.get_by_role("link", name=re.compile(r"process00\d.stdout.txt")).wait_for()
    now.get_by_role("button", name="Show in which line it is").click()
    now.locator("pre", has_text=re.compile(r"run\s+entry.py:\d+")).wait_for()
    assert opened.violations() == []
