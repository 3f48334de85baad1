"""What people do with the page: sign in, follow a job, act on it, go through it with the keyboard alone."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import httpx
import pytest

from tests.studio.chromium import Tab, tab
from tests.studio.cluster import GOOD, HOSTILE, TOKEN, Studio

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(300)]


def test_a_token_signs_in_once_and_no_script_can_read_what_stands_for_it(browser: Browser, shown: Studio) -> None:
    with tab(browser, shown.url) as opened:
        page = opened.page
        page.goto(f"{shown.url}/jobs/{shown.jobs['good']}")
        page.get_by_label("Token", exact=True).fill("another-token-that-is-long-enough")
        page.get_by_role("button", name="Sign in").click()
        page.get_by_text("This token is not valid").wait_for()
        assert opened.violations() == []

        page.get_by_label("Token", exact=True).fill(TOKEN)
        page.keyboard.press("Enter")
        page.get_by_role("heading", name="good one").wait_for()
        (cookie,) = page.context.cookies()
        assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
        assert page.evaluate("[document.cookie, localStorage.length + sessionStorage.length]") == ["", 0]
        page.reload()
        page.get_by_role("heading", name="good one").wait_for()

        page.get_by_role("button", name="Sign out").click()
        page.get_by_label("Token", exact=True).wait_for()
        assert opened.troubles == []


def test_a_link_that_was_used_says_so_and_how_to_get_another(browser: Browser, shown: Studio) -> None:
    headers = {"Authorization": f"Bearer {TOKEN}"}
    link = httpx.post(f"{shown.url}/v1/session:code", headers=headers, trust_env=False, timeout=60).json()["link"]
    with tab(browser, shown.url) as first:
        first.page.goto(f"{shown.url}{link}")
        first.page.get_by_role("button", name="Sign out").wait_for()
        with tab(browser, shown.url) as second:
            second.page.goto(f"{shown.url}{link}")
            second.page.get_by_text("This link was used already").wait_for()
            second.page.get_by_role("button", name="Copy: parallelrun up").first.wait_for()
            assert second.violations() == []
            second.page.get_by_label("Token", exact=True).wait_for()
        first.page.goto(f"{shown.url}/jobs{link.removeprefix('/')}")  # as when the page is restored
        first.page.reload()
        first.page.get_by_role("button", name="Sign out").wait_for()
        assert first.page.get_by_role("alert").count() == 0


def test_what_users_write_stays_text(opened: Tab, shown: Studio) -> None:
    page = opened.page
    opened.open("/jobs")
    page.get_by_text(f"team={HOSTILE}").wait_for()
    opened.open(f"/jobs/{shown.jobs['broken']}")
    page.get_by_text(HOSTILE).first.wait_for()
    page.get_by_role("link", name=re.compile("Open the log:")).click()
    page.get_by_role("region", name=re.compile("Lines of")).get_by_text(HOSTILE).first.wait_for()
    assert page.locator("img").count() == 0


def test_a_job_without_a_name_is_told_from_others(opened: Tab, shown: Studio) -> None:
    page = opened.page
    job = shown.cluster.submit(GOOD, inputs=shown.cluster.files(1))
    opened.open("/jobs")
    page.get_by_role("link", name=f"entry.py {job[-6:]}").click()
    page.get_by_role("heading", name=f"entry.py {job[-6:]}").wait_for()
    opened.open(f"/jobs/{shown.jobs['pipeline']}")
    page.get_by_role("link", name="score").first.click()
    page.get_by_role("heading", name="score", exact=True).wait_for()


def test_the_filters_of_jobs_are_in_the_address(opened: Tab) -> None:
    page = opened.page
    opened.open("/jobs?state=failed")
    page.get_by_role("link", name="broken one").wait_for()
    assert page.get_by_role("link", name="good one").count() == 0
    page.get_by_role("link", name=re.compile("^all")).click()
    page.get_by_role("link", name="good one").wait_for()
    page.get_by_label("Name, id or tag").fill("team= good")
    page.get_by_role("link", name="broken one").wait_for(state="detached")
    assert page.url.endswith("?q=team%3D+good")
    page.reload()
    page.get_by_role("link", name="good one").wait_for()
    assert page.get_by_role("link", name="broken one").count() == 0


def test_the_keyboard_is_enough(opened: Tab, shown: Studio) -> None:
    page = opened.page
    opened.open("/nodes")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    page.keyboard.type("gj")
    page.get_by_role("link", name="broken one").wait_for()
    page.keyboard.press("/")
    page.keyboard.type("good")
    page.get_by_role("link", name="broken one").wait_for(state="detached")
    page.keyboard.press("Tab")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="good one").wait_for()
    assert page.url.endswith(f"/jobs/{shown.jobs['good']}")

    page.keyboard.press("2")
    squares = page.get_by_role("group", name=re.compile("squares? of one mini-batch"))
    squares.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Mini-batch 1").wait_for()
    page.keyboard.press("3")
    lanes = page.get_by_role("group", name=re.compile("workers?. Up and down"))
    lanes.focus()
    page.keyboard.press("+")
    page.wait_for_url("**/timeline?from=*")
    page.keyboard.press("0")
    page.wait_for_url("**/timeline")

    page.keyboard.press("?")
    page.get_by_role("dialog", name="Keys").wait_for()
    page.keyboard.press("Escape")
    page.get_by_role("dialog", name="Keys").wait_for(state="detached")


def test_tabs_follow_a_job_and_see_what_is_done_in_another(opened: Tab, shown: Studio) -> None:
    page, job = opened.page, shown.live()
    other = page.context.new_page()
    for each in (page, other):
        each.goto(f"{shown.url}/jobs/{job}")
        each.get_by_text("live", exact=True).wait_for()
    figure = page.locator(".figures dd").first
    before = figure.inner_text()
    shown.cluster.until(lambda: figure.inner_text() != before, "the figures change", 30)

    page.get_by_role("button", name="Cancel").click()
    page.get_by_role("button", name="Leave it").click()
    assert not shown.cluster.folder(job).has_ended
    page.get_by_role("button", name="Cancel").click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel", exact=True).click()
    for each in (page, other):
        each.locator(".heading .state", has_text="canceled").wait_for()
        each.get_by_role("button", name="Resume").wait_for()


def test_gpus_are_shown_where_there_are_any(opened: Tab, shown: Studio) -> None:
    """Machines that run tests have none, so their table is written here."""
    times = [f"2026-11-23T08:{second // 60:02}:{second % 60:02}.000000" for second in range(1000)]
    table = (
        "Utc Time,Gpu,Name,Utilization Percent,Memory Total (MB),Memory Used (MB)\n"
        + "".join(f"{time},0,H200,80.0,141000,70500\n" for time in times[:-1])
        + f"{times[-1]},0,H200,90.0,141000,71000\n"
        + "".join(f"{times[0]},{gpu},H200,80.0,141000,70500\n" for gpu in range(1, 19))
    )
    perf = "sys/perf/node000"
    entries = [
        {"path": f"{perf}/{name}", "bytes": 200, "modified": "2026-11-23T08:00:00.000Z"}
        for name in ("node_gpu_usage.csv", "node_resource_usage.csv")
    ]
    files = {"items": entries, "truncated": False, "next_page_token": None, "elsewhere": []}
    opened.page.route("**/logs", lambda route: route.fulfill(json=files))
    opened.page.route("**/node_gpu_usage.csv", lambda route: route.fulfill(body=table, content_type="text/plain"))
    opened.open(f"/jobs/{shown.jobs['good']}/resources")
    opened.page.get_by_role("heading", name="GPU 0 (H200)").wait_for()
    chart = opened.page.get_by_role("region", name="GPU 0 (H200)", exact=True)
    chart.get_by_role("button", name="Show as table").click()
    opened.page.get_by_role("cell", name="90 %", exact=True).wait_for()
    assert chart.get_by_role("row").count() == 1 + 334, "the head, and every third record"
    opened.page.get_by_text("and 3 more", exact=True).wait_for()
    assert opened.page.get_by_role("heading", name="(H200)").count() == 16


def test_workers_are_asked_where_they_are(opened: Tab, shown: Studio) -> None:
    page = opened.page
    opened.open(f"/jobs/{shown.live()}/resources")
    page.get_by_role("button", name="Ask them").click()
    page.locator("summary", has_text="process000").click()
    page.get_by_text("main thread").first.wait_for()


def test_a_line_of_a_log_has_an_address_and_is_met_by_a_search(opened: Tab, shown: Studio) -> None:
    page = opened.page
    opened.open(f"/jobs/{shown.jobs['good']}/logs")
    page.get_by_role("searchbox", name="Search in all logs").fill("file-0000041")
    page.keyboard.press("Enter")
    page.get_by_role("link", name=re.compile("stdout.txt:")).click()
    line = page.locator("li[aria-current]")
    line.wait_for()
    assert "file-0000041" in line.inner_text()
    page.get_by_role("region", name=re.compile("Lines of")).press("j")
    address = page.url
    following = page.locator("li[aria-current]").inner_text()
    page.goto(address)
    assert page.locator("li[aria-current]").inner_text() == following


def test_the_sign_in_that_ends_is_asked_for_again_over_the_page(opened: Tab, shown: Studio) -> None:
    page = opened.page
    opened.open("/jobs?q=good")
    page.context.clear_cookies()
    page.get_by_label("Token", exact=True).fill(TOKEN)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("dialog").wait_for(state="detached")
    page.get_by_role("link", name="good one").wait_for()
    assert page.url == f"{shown.url}/jobs?q=good"


def test_a_server_that_restarts_is_waited_for(opened: Tab, shown: Studio) -> None:
    page, job = opened.page, shown.live()
    opened.open(f"/jobs/{job}")
    page.get_by_text("live", exact=True).wait_for()
    shown.cluster.kill("api")
    page.get_by_text(re.compile(r"no connection: as of \d\d:\d\d")).wait_for()
    page.get_by_role("heading", name="long one").wait_for()
    shown.cluster.start("api")
    page.get_by_text("live", exact=True).wait_for()
    page.get_by_text("no connection").wait_for(state="detached")


def test_a_search_finds_jobs_beyond_the_first_page_of_the_list(opened: Tab, shown: Studio) -> None:
    page = opened.page
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    opened.open("/jobs?q=nightly")
    page.get_by_role("link", name="nightly", exact=True).wait_for()
    assert any("/v1/job-summaries?q=nightly" in each for each in requests)
    assert page.locator("tr .progress", has_text="4 / 4 steps").count() == 1

    page.get_by_label("Name, id or tag").fill("")
    page.get_by_role("navigation", name="State").get_by_role("link", name=re.compile(r"^failed [1-9]")).click()
    page.get_by_role("link", name="good one").wait_for(state="detached")
    page.get_by_label("Submitted").select_option("last hour")
    page.get_by_role("link", name="Items").click()
    assert "state=failed&range=1h&order=items" in page.url
    page.locator("th[aria-sort=descending]", has_text="Items").wait_for()
    page.reload()
    page.get_by_role("link", name="broken one").wait_for()


def test_any_number_of_jobs_can_be_chosen(opened: Tab) -> None:
    page = opened.page
    opened.open("/jobs?range=24h")
    for name in ("good one", "broken one", "nightly"):
        page.get_by_label(f"Choose {name}").check()
    page.get_by_text("3 chosen").wait_for()
    assert page.get_by_label("Choose good one").is_checked()
    page.get_by_role("button", name="Cancel", exact=True).click()
    dialog = page.get_by_role("dialog", name="Cancel: 3 jobs?")
    dialog.get_by_text("It can be done to none of them").wait_for()
    assert dialog.get_by_role("button", name="Cancel", exact=True).is_disabled()
    dialog.get_by_role("button", name="Leave it").click()
    page.get_by_label("Choose nightly").uncheck()
    assert page.get_by_role("link", name="Compare these 3").count() == 0
    page.get_by_role("link", name="Compare these two").click()
    page.get_by_role("heading", name="Compare").wait_for()


def test_more_than_two_jobs_are_compared_and_deleted_together(opened: Tab, shown: Studio) -> None:
    page = opened.page
    sizes = {f"compared {size}": size for size in (1, 2, 4)}
    jobs = [
        shown.cluster.submit(GOOD, inputs=shown.cluster.files(4), name=name, mini_batch_size=size)
        for name, size in sizes.items()
    ]
    for job in jobs:
        shown.cluster.result(job)
    opened.open("/jobs?q=compared")
    for name in sizes:
        page.get_by_label(f"Choose {name}").check()
    page.get_by_role("link", name="Compare these 3").click()
    settings = page.get_by_role("region", name="Table of settings")
    row = settings.locator("tr", has_text="mini_batch_size").locator("td")
    row.nth(2).wait_for()
    assert row.all_inner_texts() == ["1", "2", "4"]
    assert page.get_by_role("region", name="Table of figures").locator("thead th").count() == 4
    assert opened.violations() == []

    opened.open("/jobs?q=compared")
    for name in list(sizes)[:2]:
        page.get_by_label(f"Choose {name}").check()
    page.get_by_role("button", name="Delete", exact=True).click()
    dialog = page.get_by_role("dialog", name="Delete: 2 jobs?")
    dialog.get_by_text("removed for good").wait_for()
    assert opened.violations() == []
    dialog.get_by_role("button", name="Delete", exact=True).click()
    page.get_by_text("2 chosen").wait_for(state="detached")
    page.get_by_role("link", name="compared 1").wait_for(state="detached")
    page.get_by_role("link", name="compared 4").wait_for()
    headers = {"Authorization": f"Bearer {TOKEN}"}
    answers = [httpx.get(f"{shown.url}/v1/jobs/{job}", headers=headers, trust_env=False, timeout=60) for job in jobs]
    assert [answer.status_code for answer in answers] == [404, 404, 200]


def test_a_mini_batch_of_a_filtered_list_leaves_the_filter_as_it_is(opened: Tab, shown: Studio) -> None:
    page = opened.page
    opened.open(f"/jobs/{shown.jobs['broken']}/mini-batches?state=failed&order=slowest&first=0&end=50")
    page.locator("table.mini-batches a.row").first.click()
    page.get_by_role("heading", name=re.compile(r"^Mini-batch \d")).wait_for()
    assert "state=failed&order=slowest&first=0&end=50&id=" in page.url
    assert page.get_by_role("button", name="failed", exact=True).get_attribute("aria-pressed") == "true"


def test_a_mini_batch_names_its_inputs(opened: Tab, shown: Studio) -> None:
    page = opened.page
    opened.open(f"/jobs/{shown.jobs['broken']}/mini-batches?id=13")
    page.locator(".inputs code", has_text="file-0000013.txt").wait_for()
    page.get_by_role("button", name="Copy", exact=True).first.wait_for()
