"""Schedules, assets, datastores and endpoints have pages, and lead to their jobs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from tests.studio.chromium import Tab, tab
from tests.studio.cluster import GOOD, TOKEN, Studio

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture
def opened(browser: Browser, shown: Studio) -> Iterator[Tab]:
    with tab(browser, shown.url, cookies=[shown.cookie()]) as opened:
        yield opened
    assert opened.troubles == []


def ask(shown: Studio, method: str, path: str, body: Any) -> None:
    answer = httpx.request(method, f"{shown.url}/v1{path}", json=body, headers={"Authorization": f"Bearer {TOKEN}"})
    assert answer.is_success, answer.text


def test_a_schedule_is_run_now_paused_and_leads_to_its_jobs(opened: Tab, shown: Studio) -> None:
    page = opened.page
    job = {
        "name": "by a schedule",
        "entry_script": "entry.py",
        "code": str(shown.cluster.code(GOOD)),
        "inputs": {"data": {"path": str(shown.cluster.files(4))}},
        "mini_batch_size": 2,
    }
    trigger = {"type": "cron", "expression": "30 2 * * *"}
    ask(shown, "PUT", "/schedules/every-night", {"trigger": trigger, "create_job": job})
    opened.open("/schedules")
    card = page.get_by_role("region", name="every-night")
    card.get_by_text("30 2 * * *").wait_for()
    card.get_by_role("button", name="Run now").click()
    page.get_by_role("heading", name="by a schedule").wait_for()

    opened.open("/schedules")
    card.get_by_role("list", name="Last times of every-night").get_by_text("manual").wait_for()
    card.get_by_role("button", name="Pause").click()
    card.get_by_text("paused").wait_for()
    card.get_by_role("link", name="by a schedule").click()
    page.get_by_role("link", name="schedule every-night").first.wait_for()
    page.get_by_role("link", name="by a schedule").first.wait_for()


def test_assets_are_shown_with_their_versions(opened: Tab, shown: Studio) -> None:
    page = opened.page
    ask(shown, "POST", "/assets/data/rows/versions", {"type": "uri_folder", "path": str(shown.cluster.files(4))})
    opened.open("/library")
    page.get_by_role("button", name="rows", exact=True).click()
    page.get_by_role("button", name="Copy azureml:rows:1").wait_for()
    page.get_by_role("button", name="Datastores").click()
    page.get_by_role("heading", name="Datastores").wait_for()
    page.get_by_role("button", name="Batch endpoints").click()
    page.get_by_role("heading", name="Batch endpoints").wait_for()
