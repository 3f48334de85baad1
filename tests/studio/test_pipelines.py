"""A pipeline: boxes by state, whole reasons, the failed step's log in one click, and its steps in time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from tests.studio.chromium import NARROW, Tab, tab
from tests.studio.cluster import GOOD, Studio

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def fails(shown: Studio) -> str:
    command: dict[str, Any] = {"type": "command", "job": {"command": "echo hello"}, "script": ""}
    score: dict[str, Any] = {
        "job": {"inputs": {"data": {"path": str(shown.cluster.files(4))}}, "mini_batch_size": 1},
        "script": "def init(): raise ValueError('the model is not here')\ndef run(mini_batch): return mini_batch",
    }
    steps = {
        "prepare": command,
        "score": {**score, "after": ["prepare"]},
        "report": {**command, "after": ["score"]},
    }
    job = shown.cluster.submit_pipeline(GOOD, steps, name="fails")
    shown.cluster.result(job)
    return job


@pytest.fixture
def opened(browser: Browser, shown: Studio) -> Iterator[Tab]:
    with tab(browser, shown.url, cookies=[shown.cookie()]) as opened:
        yield opened
    assert opened.troubles == []


def test_steps_are_coloured_by_state_and_say_the_whole_reason(opened: Tab, fails: str) -> None:
    page = opened.page
    opened.open(f"/jobs/{fails}")
    page.locator(".step.failed", has_text="score").wait_for()
    colors = {
        state: page.locator(f".step.{state}").first.evaluate("each => getComputedStyle(each).backgroundColor")
        for state in ("done", "failed", "stopped")
    }
    assert len(set(colors.values())) == 3, colors
    assert page.locator(".plane > svg > path[marker-end]").count() == 2
    is_cut = "(each) => each.scrollHeight > each.clientHeight + 1"
    texts = page.locator(".step .sub").evaluate_all(f"all => all.filter({is_cut}).map((each) => each.innerText)")
    assert texts == []
    page.locator(".step.failed").get_by_role("link", name="Open its log").click()
    page.locator(".log-lines", has_text="the model is not here").wait_for()


def test_steps_of_a_pipeline_stand_in_time(opened: Tab, shown: Studio, fails: str) -> None:
    page = opened.page
    opened.open(f"/jobs/{fails}/timeline")
    rows = page.locator(".gantt li")
    rows.nth(2).wait_for()
    assert rows.count() == 3
    bars = [page.locator(f".gantt .lane .{state}").first.bounding_box() for state in ("done", "failed")]
    first, second = bars
    assert first is not None
    assert second is not None
    assert second["x"] >= first["x"]
    rows.nth(1).get_by_role("link", name="Open its log").wait_for()
    assert re.search(r"\d\d:\d\d:\d\d", rows.nth(0).inner_text())
    assert opened.violations() == []
    opened.resize(*NARROW)
    assert opened.overflow() <= 0


def test_outputs_of_a_pipeline_are_downloaded_from_its_head(opened: Tab, shown: Studio) -> None:
    page = opened.page
    opened.open(f"/jobs/{shown.jobs['pipeline']}")
    page.get_by_role("link", name="Download …").click()
    page.get_by_role("link", name=re.compile("^Download .*")).first.wait_for()
