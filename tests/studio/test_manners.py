"""How the page speaks: at the first run, at the sign-in, in the browser's tab, on a phone."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import httpx
import pytest

from tests.studio.chromium import NARROW, Tab, tab
from tests.studio.cluster import TOKEN, Studio

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Route

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(300)]


def test_an_empty_list_leads_to_the_first_job(opened: Tab) -> None:
    page = opened.page
    nothing = {"items": [], "total": 0, "by_state": {}, "next_page_token": None}
    page.route("**/v1/job-summaries*", lambda route: route.fulfill(json=nothing))
    opened.open("/jobs")
    page.get_by_role("heading", name="No job yet").wait_for()
    page.get_by_role("button", name="Copy: parallelrun init first-job").wait_for()
    page.get_by_text("docs/job-spec.md").wait_for()
    assert opened.violations() == []
    page.get_by_role("button", name="Run the example job").click()
    page.get_by_role("heading", name="first-job").wait_for()
    page.get_by_text("40 items gave 40 rows").wait_for(timeout=90_000)


def test_the_tab_of_the_browser_says_how_a_job_stands(opened: Tab, shown: Studio) -> None:
    page = opened.page
    opened.open(f"/jobs/{shown.live()}")
    opened.until(r"/^<?>?\d+ % · long one · ParallelRun$/.test(document.title)")
    opened.open(f"/jobs/{shown.jobs['broken']}/logs")
    opened.until("document.title === 'failed · broken one · logs · ParallelRun'")
    icon = page.locator("link[rel=icon]").get_attribute("href")
    assert icon is not None
    assert "%23c8322b" in icon


def test_the_end_of_a_job_is_told_to_who_asks_for_it(opened: Tab, shown: Studio) -> None:
    page, job = opened.page, shown.submit_slow(40)
    page.add_init_script("""
        window.told = [];
        window.Notification = class {
            static requestPermission = async () => "granted";
            constructor(title) { window.told.push(title); }
        };
    """)
    opened.open(f"/jobs/{job}")
    page.get_by_role("button", name="Tell me at the end").click()
    page.get_by_role("button", name="Tell me at the end", pressed=True).wait_for()
    assert page.evaluate("told") == []
    shown.cluster.result(job)
    opened.until("told.length === 1")
    assert page.evaluate("told") == ["long one: completed"]


def test_advice_is_of_the_rest_of_a_job_and_names_what_would_be_kept(opened: Tab, shown: Studio) -> None:
    page = opened.page
    opened.open(f"/jobs/{shown.live()}/advice")
    table = page.get_by_role("region", name="Table of what other settings give")
    table.get_by_text("The rest, from now").wait_for()
    table.get_by_role("cell", name=re.compile(r"ends about \d\d:\d\d")).first.wait_for()
    job = shown.cluster.submit(
        "def run(mini_batch):\n    if any('3.txt' in str(each) for each in mini_batch):\n"
        "        raise ValueError('not this one')\n    return list(mini_batch)\n",
        inputs=shown.cluster.files(40), name="wholes", mini_batch_size=4, error_threshold=-1, run_max_try=1,
    )  # fmt: skip
    shown.cluster.result(job)
    opened.open(f"/jobs/{job}/advice")
    page.get_by_text("would have been kept").first.wait_for()


def test_every_page_says_how_the_cluster_stands(opened: Tab, shown: Studio) -> None:
    shown.live()
    opened.open("/jobs")
    line = opened.page.locator("footer.status-line")
    line.get_by_text("2 of 2 workers busy, 0 free").wait_for()
    line.get_by_text("left on the fullest disk").wait_for()


def test_a_failure_says_what_to_do_in_sentences(opened: Tab, shown: Studio) -> None:
    job = shown.cluster.submit("import nothing_of_this_name\ndef run(mini_batch): ...", inputs=shown.cluster.files(4))
    shown.cluster.result(job)
    opened.open(f"/jobs/{job}")
    sentence = opened.page.locator(".sentence.failed")
    sentence.locator("p", has_text=re.compile(r"^What to do: [A-Z].*\.$")).wait_for()
    assert "`" not in sentence.inner_text()
    opened.page.get_by_text("No mini-batch was decided.").wait_for()
    phase = opened.page.get_by_role("region", name="Phases").locator("li", has_text="Waiting")
    assert phase.locator(".mark.done").count() == 1  # it had workers, whose init() failed
    assert "waited" not in opened.page.locator(".figures").inner_text()


def test_a_job_with_failed_items_says_what_to_do_and_offers_no_useless_resume(opened: Tab, shown: Studio) -> None:
    page, job = opened.page, shown.jobs["broken"]
    opened.open(f"/jobs/{job}")
    todo = page.locator(".sentence p", has_text="What to do:")
    todo.get_by_role("link", name="run it again, with changes").wait_for()
    assert page.get_by_role("button", name="Resume").count() == 0, "the server would refuse it"
    page.get_by_role("button", name="Retry failed").wait_for()
    todo.get_by_role("link", name="what has failed").click()
    page.wait_for_url("**/mini-batches?state=failed")


def test_a_job_that_failed_has_room_for_its_name_in_the_list_on_a_phone(opened: Tab, shown: Studio) -> None:
    opened.resize(*NARROW)
    opened.open(f"/jobs?q={shown.jobs['broken']}")
    name = opened.page.get_by_role("link", name="broken one").bounding_box()
    why = opened.page.locator(".standing .message").bounding_box()
    assert name is not None
    assert why is not None
    assert name["width"] > 60
    assert why["y"] > name["y"] + name["height"]


def test_the_head_of_a_job_leaves_the_first_screen_of_a_phone_to_its_content(opened: Tab, shown: Studio) -> None:
    opened.resize(*NARROW)
    opened.open(f"/jobs/{shown.jobs['good']}")
    tabs = opened.page.locator("nav.tabs").bounding_box()
    assert tabs is not None
    assert tabs["y"] < NARROW[1] / 2


def test_everything_that_one_looks_for_first_is_in_sight_on_a_phone(opened: Tab, shown: Studio) -> None:
    live = shown.live()
    opened.resize(*NARROW)
    opened.open(f"/jobs/{live}")
    page = opened.page
    for each in (
        page.get_by_role("navigation", name="Pages").get_by_role("link", name="Nodes"),
        page.locator(".job-head .heading .state"),
        page.get_by_role("button", name="Cancel"),
    ):
        box = each.bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= NARROW[0]
    opened.open("/jobs")
    page.locator("tbody tr").first.wait_for()
    for state in page.locator("tbody .state").all():
        box = state.bounding_box()
        assert box is not None
        assert box["x"] + box["width"] <= NARROW[0]
    assert opened.violations() == []


PATHS: Final = ("/jobs", "/new", "/nodes", "/schedules", "/library", "/jobs/{good}", "/jobs/{good}/logs", "/compare")


def is_of_session(route: Route) -> None:
    """Leave all requests but those for the session without an answer: they would be refused, and tell of it, too."""
    if route.request.url.endswith("/v1/session"):
        route.continue_()


def test_every_view_asks_for_a_sign_in_when_another_tab_signs_out(opened: Tab, shown: Studio) -> None:
    """Also a view that asks the server for nothing else; and each goes on when another tab has signed in."""
    page, other = opened.page, opened.page.context.new_page()
    for path in PATHS:
        page.context.add_cookies([shown.cookie()])
        opened.open(path.format_map(shown.jobs))
        page.route("**/v1/**", is_of_session)
        other.goto(f"{shown.url}/nodes")
        other.get_by_role("button", name="Sign out").click()
        dialog = page.get_by_role("dialog", name="Sign in to ParallelRun")
        dialog.get_by_text("Your session has ended").wait_for()
        page.unroute_all(behavior="ignoreErrors")
        other.get_by_label("Token", exact=True).fill(TOKEN)
        other.get_by_role("button", name="Sign in").click()
        dialog.wait_for(state="detached")


def test_a_job_that_is_followed_says_that_its_session_has_ended_elsewhere(browser: Browser, shown: Studio) -> None:
    """Its event stream tells it: nobody asks each second whether one is still signed in."""
    cookie, job = shown.cookie(), shown.live()
    with tab(browser, shown.url, cookies=[cookie]) as opened:
        asked: list[str] = []
        opened.page.on("request", lambda request: asked.append(request.url.removeprefix(f"{shown.url}/v1/")))
        opened.open(f"/jobs/{job}")
        opened.page.get_by_text("live", exact=True).wait_for()
        for _ in range(3):  # the job is asked for anew each second or so, and nothing else with it
            with opened.page.expect_request(f"**/v1/jobs/{job}"):
                pass
        assert asked.count("session") == 1
        opened.page.route("**/v1/**", is_of_session)
        own = {"Cookie": f"{cookie['name']}={cookie['value']}", "X-ParallelRun-Page": "1"}
        httpx.delete(f"{shown.url}/v1/session", headers=own, trust_env=False, timeout=60).raise_for_status()
        opened.page.get_by_role("dialog", name="Sign in to ParallelRun").wait_for()
        assert opened.troubles == []
