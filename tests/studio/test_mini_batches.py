"""Mini-batches of a job are found by what they read, and gone through one by one; one that failed is retried."""

from __future__ import annotations

from collections import Counter
from urllib.parse import urlsplit

import pytest

from tests.studio.chromium import NARROW, WIDE, Tab
from tests.studio.cluster import BROKEN, Studio

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(300)]


def test_mini_batches_are_searched_by_the_name_of_an_input(opened: Tab, shown: Studio) -> None:
    page = opened.page
    opened.open(f"/jobs/{shown.jobs['good']}/mini-batches")
    rows = page.locator("table.mini-batches tbody tr")
    page.get_by_role("searchbox", name="Name of an input").fill("00017.TXT")
    opened.until("document.querySelectorAll('table.mini-batches tbody tr').length === 1")
    assert rows.locator("code").first.inner_text().endswith("00017.txt")
    assert "input=00017.TXT" in page.url
    assert opened.violations() == []
    page.set_viewport_size({"width": NARROW[0], "height": NARROW[1]})
    assert opened.violations() == []
    page.set_viewport_size({"width": WIDE[0], "height": WIDE[1]})


def test_mini_batches_that_failed_are_gone_through_by_keys_and_one_is_retried(opened: Tab, shown: Studio) -> None:
    job = shown.cluster.submit(
        BROKEN,
        inputs=shown.cluster.files(25),
        name="three are broken",
        mini_batch_size=1,
        error_threshold=5,
        run_max_try=1,
    )
    shown.cluster.result(job)
    page = opened.page
    opened.open(f"/jobs/{job}/mini-batches?state=failed")
    page.locator("table.mini-batches a.row").first.click()
    failed = page.locator("table.mini-batches a.row").all_inner_texts()
    assert len(failed) == 3
    for number in failed[1:]:
        page.keyboard.press("j")
        page.get_by_role("region", name=f"Mini-batch {number}", exact=True).wait_for()
        assert "state=failed" in page.url
    page.keyboard.press("k")
    page.get_by_role("region", name=f"Mini-batch {failed[1]}", exact=True).wait_for()

    items = page.get_by_role("region", name="Failed items")
    items.get_by_text("3 of 3").wait_for()
    items.get_by_title("Copy the names that are shown").wait_for()
    with page.expect_download() as download:
        items.get_by_role("link", name="Download all").click()
    assert len(download.value.path().read_text().splitlines()) == 1 + 3

    page.get_by_role("button", name="Retry this one").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_text(f"parallelrun job retry {job} --mini-batches {failed[1]}").wait_for()
    assert opened.violations() == []
    dialog.get_by_role("button", name="Retry", exact=True).click()
    page.get_by_role("heading", name="three are broken").wait_for()
    shown.cluster.until(lambda: shown.cluster.folder(job).generation() == 1, "it goes on", 60)
    shown.cluster.result(job)
    page.goto(f"{shown.url}/jobs/{job}/mini-batches?id={failed[1]}")
    page.get_by_text("after 1 reopening").wait_for()


def test_a_click_on_a_tab_asks_for_each_part_of_it_once(opened: Tab, shown: Studio) -> None:
    page = opened.page
    opened.open(f"/jobs/{shown.jobs['good']}")
    asked = Counter[str]()
    page.on("request", lambda request: asked.update([urlsplit(request.url).path.rpartition("/")[2]]))
    page.get_by_role("link", name="Mini-batches", exact=True).click()
    page.locator("canvas").wait_for()
    page.locator("table.mini-batches").wait_for()
    assert (asked["tiles"], asked["mini-batches"]) == (1, 1)


def test_what_a_tab_shows_is_asked_for_before_its_first_frame(opened: Tab, shown: Studio) -> None:
    page = opened.page
    opened.open(f"/jobs/{shown.jobs['good']}")
    framed_at = page.evaluate("""() => new Promise(resolve => {
        [...document.querySelectorAll("nav.tabs a")].find(each => each.textContent === "Mini-batches").click();
        requestAnimationFrame(() => resolve(performance.now()));
    })""")
    page.locator("canvas").wait_for()
    page.locator("table.mini-batches").wait_for()
    asked_at = page.evaluate("""() => Object.fromEntries(performance.getEntriesByType("resource")
        .map(each => [new URL(each.name).pathname.split("/").pop(), each.startTime]))""")
    assert max(asked_at["tiles"], asked_at["mini-batches"]) <= framed_at
