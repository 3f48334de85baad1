"""Jobs that are chosen in the list are tagged together."""

from __future__ import annotations

import pytest

from tests.studio.chromium import Tab
from tests.studio.cluster import Studio

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(300)]


def test_what_cant_be_undone_looks_so(opened: Tab) -> None:
    page = opened.page
    opened.open("/jobs")
    page.locator("tbody").get_by_role("checkbox").first.check()
    page.get_by_role("button", name="Delete", exact=True).click()
    dialog = page.get_by_role("dialog", name="Delete: 1 job?")
    dialog.get_by_text("removed for good").wait_for()
    assert "grave" in (dialog.get_by_role("button", name="Delete").get_attribute("class") or "")
    assert opened.violations() == []
    dialog.get_by_role("button", name="Leave it").click()


def test_chosen_jobs_are_tagged_together_and_found_by_that(opened: Tab, shown: Studio) -> None:
    page = opened.page
    opened.open("/jobs?q=one")
    rows = (
        page.locator("table.jobs tbody tr")
        .filter(has_text="good one")
        .or_(page.locator("table.jobs tbody tr").filter(has_text="broken one"))
    )
    for row in rows.all():
        row.get_by_role("checkbox").check()
    page.get_by_role("button", name="Tag", exact=True).click()
    dialog = page.get_by_role("dialog", name="Tag: 2 jobs?")
    dialog.get_by_label("Tags").fill("looked-at=yes draft")
    assert opened.violations() == []
    dialog.get_by_role("button", name="Tag", exact=True).click()
    dialog.wait_for(state="detached")
    page.get_by_role("button", name="Tag", exact=True).click()
    dialog.get_by_label("Tags").fill("-draft")
    dialog.get_by_role("button", name="Tag", exact=True).click()
    dialog.wait_for(state="detached")

    opened.open("/jobs?q=looked-at%3Dyes")
    page.get_by_text("2 jobs").wait_for()
    opened.open(f"/jobs/{shown.jobs['broken']}")
    page.get_by_text("looked-at=yes").wait_for()
    assert page.get_by_text("draft", exact=True).count() == 0
