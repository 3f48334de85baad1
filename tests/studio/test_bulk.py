"""Jobs that are chosen in the list are tagged together."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.studio.chromium import Tab
from tests.studio.cluster import Studio

if TYPE_CHECKING:
    from playwright.sync_api import Route

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


def test_a_dialog_names_the_jobs_what_becomes_of_each_and_those_that_stay(opened: Tab, shown: Studio) -> None:
    page, live = opened.page, shown.live()
    opened.open("/jobs?q=one")
    page.get_by_label("Choose all that are shown").check()
    page.get_by_role("button", name="Cancel", exact=True).click()
    dialog = page.get_by_role("dialog", name=re.compile(r"^Cancel: 1 of \d jobs\?$"))
    dialog.get_by_role("list", name="Cancel").get_by_text(re.compile(r"long one .*done (is|are) kept")).wait_for()
    left = page.get_by_role("list", name="Left as they are")
    left.get_by_text("good one has completed already").wait_for()
    left.get_by_text("broken one has failed already").wait_for()
    assert opened.violations() == []
    dialog.get_by_role("button", name="Leave it").click()
    page.get_by_role("button", name="Retry failed").click()
    dialog = page.get_by_role("dialog", name=re.compile(r"^Retry failed: 1 of "))
    dialog.get_by_text(re.compile(r"broken one runs \d+ mini-batches that failed")).wait_for()
    left.get_by_text("good one has completed, and nothing has failed in it").wait_for()
    left.get_by_text("long one has not ended").wait_for()
    dialog.get_by_role("button", name="Leave it").click()
    page.get_by_role("button", name="Delete", exact=True).click()
    page.get_by_role("dialog", name=re.compile(r"^Delete: ")).get_by_text("has not ended: cancel it first").wait_for()
    assert not shown.cluster.folder(live).has_ended


def test_a_dialog_names_ten_jobs_and_counts_the_rest(opened: Tab) -> None:
    page = opened.page

    def many(route: Route) -> None:
        answer = route.fetch().json()
        first = answer["items"][:1]  # the line at the foot asks for queued ones, of which there is none
        answer["items"] = [
            {**each, "id": f"job_{number:020}", "name": f"like {number}"} for each in first for number in range(13)
        ]
        route.fulfill(json=answer)

    page.route("**/v1/job-summaries*", many)
    opened.open("/jobs")
    page.get_by_label("Choose all that are shown").check()
    page.get_by_role("button", name="Archive").click()
    named = page.get_by_role("dialog", name="Archive: 13 jobs?").get_by_role("list", name="Archive")
    named.get_by_text("like 9").wait_for()
    named.get_by_text("and 3 more").wait_for()
    assert named.get_by_text("like 10").count() == 0


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
