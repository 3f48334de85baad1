"""The people of a cluster: their tokens, quotas and usage; one person sees nothing of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import httpx
import pytest

from tests.studio.chromium import NARROW, Tab, tab
from tests.studio.cluster import SLOW, TOKEN, Studio

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Route

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(300)]


def client_of(shown: Studio, token: str) -> httpx.Client:
    return httpx.Client(base_url=shown.url, headers={"Authorization": f"Bearer {token}"}, trust_env=False, timeout=60)


@contextmanager
def opened_by(browser: Browser, shown: Studio, token: str = TOKEN) -> Iterator[Tab]:
    """A browser of its own that is signed in with a token, and has no trouble."""
    with tab(browser, shown.url, cookies=[shown.cookie(token)]) as opened:
        yield opened
    assert opened.troubles == []


@pytest.fixture
def operator(shown: Studio) -> Iterator[httpx.Client]:
    """Of the server's own token. Afterwards one person has the cluster again."""
    with client_of(shown, TOKEN) as client:
        yield client
        for kind in ("tokens", "quotas"):
            for each in client.get(f"/v1/{kind}").json()["items"]:
                client.delete(f"/v1/{kind}/{each['name']}")


def row_of(opened: Tab, table: str, name: str) -> Locator:
    region = opened.page.get_by_role("region", name=f"Table: {table}")
    return region.locator("tbody tr").filter(has_text=name)


def test_one_person_sees_nothing_of_people(browser: Browser, shown: Studio) -> None:
    with opened_by(browser, shown) as opened:
        opened.open("/jobs")
        opened.page.get_by_role("link", name="Nodes").wait_for()
        assert opened.page.get_by_role("link", name="People").count() == 0
        opened.open("/people")
        opened.page.get_by_role("heading", name="Nothing here").wait_for()


def test_people_get_tokens_that_are_shown_once_and_revoked(
    browser: Browser, shown: Studio, operator: httpx.Client
) -> None:
    operator.put("/v1/tokens/olga", json={"scopes": ["admin"]}).raise_for_status()
    with opened_by(browser, shown) as opened:
        opened.open("/jobs")
        opened.page.get_by_role("link", name="People").click()
        opened.page.get_by_role("button", name="New token").click()
        dialog = opened.page.get_by_role("dialog")
        dialog.get_by_label("Name").fill("dashboard")
        dialog.get_by_label("Scope").select_option("read")
        assert opened.violations() == []
        dialog.get_by_role("button", name="Make").click()
        text = opened.page.get_by_role("status").filter(has_text="shown this once").locator("code").inner_text()
        with client_of(shown, text) as dashboard:
            session = dashboard.post("/v1/session", json={"token": text}).json()
            assert (session["token_name"], session["scopes"]) == ("dashboard", ["read"])
            opened.page.reload()
            assert "read" in row_of(opened, "Tokens", "dashboard").inner_text()
            assert text not in opened.page.content()

            opened.page.get_by_role("button", name="Revoke the token of dashboard").click()
            dialog.get_by_role("button", name="Revoke", exact=True).click()
            row_of(opened, "Tokens", "dashboard").wait_for(state="detached")
            assert dashboard.get("/v1/jobs").status_code == 401
        assert opened.violations() == []


def test_an_admin_sets_changes_and_removes_a_quota(browser: Browser, shown: Studio, operator: httpx.Client) -> None:
    anna = operator.put("/v1/tokens/anna", json={}).json()["token"]
    with opened_by(browser, shown) as opened:
        page, dialog = opened.page, opened.page.get_by_role("dialog")
        opened.open("/people")
        page.get_by_role("button", name="New quota").click()
        dialog.get_by_label("Person").fill("everybody")
        dialog.get_by_label("Jobs that have not ended").fill("0")
        dialog.get_by_role("button", name="Set").click()
        row_of(opened, "Quotas", "everybody").wait_for()
        (quota,) = operator.get("/v1/quotas").json()["items"]
        assert {name for name, most in quota.items() if most is not None} == {"name", "jobs"}
        assert quota["jobs"] == 0

        page.get_by_role("button", name="Change the quota of everybody").click()
        assert dialog.get_by_label("Jobs that have not ended").input_value() == "0"
        dialog.get_by_label("Jobs that have not ended").fill("20")
        dialog.get_by_label("Bytes of ended jobs").fill("2147483648")
        assert opened.violations() == []
        dialog.get_by_role("button", name="Set").click()
        row_of(opened, "Quotas", "everybody").get_by_text("2.00 GiB").wait_for()
        assert operator.get("/v1/quotas").json()["items"][0]["jobs"] == 20
        opened.resize(*NARROW)
        assert opened.overflow() <= 0

        with opened_by(browser, shown, anna) as hers:
            hers.open("/people")
            row_of(hers, "Quotas", "everybody").get_by_text("20").wait_for()
            assert hers.page.get_by_role("button", name="quota").count() == 0
            assert hers.page.get_by_role("heading", name="Tokens").count() == 0

        page.get_by_role("button", name="Change the quota of everybody").click()
        for label in ("Jobs that have not ended", "Bytes of ended jobs"):
            dialog.get_by_label(label).fill("")
        dialog.get_by_role("button", name="Remove").click()
        row_of(opened, "Quotas", "everybody").wait_for(state="detached")
        assert operator.get("/v1/quotas").json()["items"] == []


def test_usage_stands_by_week_and_person_as_the_csv_has_it(
    browser: Browser, shown: Studio, operator: httpx.Client
) -> None:
    operator.put("/v1/tokens/anna", json={}).raise_for_status()
    files = shown.cluster.files(40)
    job = shown.cluster.submit(
        "import time\ndef run(mini_batch):\n    time.sleep(0.3)\n    return list(mini_batch)\n",
        inputs=files,
        mini_batch_size=1,
        owner="anna",
    )
    shown.cluster.result(job)
    shown.cluster.until(lambda: '"anna"' in operator.get("/v1/usage").text, "it is reported", 120)
    usage = operator.get("/v1/usage").json()["items"]
    with opened_by(browser, shown) as opened:
        opened.open("/people")
        row = row_of(opened, "Usage by week", "anna")
        assert usage[0]["week"] in row.inner_text()
        assert opened.violations() == []
        with opened.page.expect_download() as download:
            opened.page.get_by_role("link", name="CSV").click()
        lines = download.value.path().read_text().splitlines()
        assert lines == operator.get("/v1/usage.csv").text.splitlines()
        assert any("anna" in line for line in lines[1:])
        row.get_by_role("link", name="anna").click()
        opened.page.wait_for_url("**/jobs?owner=anna")


def test_nobody_is_offered_to_change_what_is_anothers(browser: Browser, shown: Studio, operator: httpx.Client) -> None:
    anna, bert = (operator.put(f"/v1/tokens/{name}", json={}).json()["token"] for name in ("anna", "bert"))
    job = shown.cluster.submit(SLOW, inputs=shown.cluster.files(400), mini_batch_size=1, owner="anna")
    with opened_by(browser, shown, anna) as hers, opened_by(browser, shown, bert) as his:
        for opened in (hers, his):
            opened.open(f"/jobs/{job}")
        hers.page.get_by_role("button", name="Cancel").wait_for()
        assert hers.page.get_by_label("Priority").locator("option").all_inner_texts() == ["low", "normal", "high"]
        his.page.get_by_text("changed by anna alone").wait_for()
        for name in ("Cancel", "Pause"):
            assert his.page.get_by_role("button", name=name).count() == 0
        assert his.page.get_by_label("Priority").count() == 0
        assert his.violations() == []
        hers.page.get_by_role("button", name="Cancel").click()
        hers.page.get_by_role("dialog").get_by_role("button", name="Cancel", exact=True).click()
        his.page.get_by_text("canceled").first.wait_for()
    shown.cluster.result(job)


def test_a_job_that_waits_says_whose_jobs_have_the_workers(
    browser: Browser, shown: Studio, operator: httpx.Client
) -> None:
    bert = operator.put("/v1/tokens/bert", json={}).json()["token"]
    operator.put("/v1/tokens/anna", json={}).raise_for_status()
    ends = shown.cluster.home / "anna-ends"
    holds = (
        "import os, time\ndef run(mini_batch):\n"
        f"    while not os.path.exists({str(ends)!r}):\n        time.sleep(0.05)\n    return list(mini_batch)\n"
    )
    hers = shown.cluster.submit(holds, inputs=shown.cluster.files(8), name="hers", owner="anna", mini_batch_size=1)
    shown.cluster.until(lambda: shown.cluster.registry.status(hers).progress.running == 2, "it has all workers", 200)
    his, also_his = (
        shown.cluster.submit(SLOW, inputs=shown.cluster.files(2), name=name, owner="bert", mini_batch_size=1)
        for name in ("his", "also his")
    )
    try:
        with opened_by(browser, shown, bert) as opened:
            opened.open(f"/jobs/{his}")
            opened.page.locator(".heading .state", has_text="waiting for workers").wait_for()
            why = opened.page.locator(".why")
            why.get_by_text("Of 2 workers of the cluster, at work are: 2 for hers of anna").wait_for()
            why.get_by_text("1 other job waits for workers, too").wait_for()
            phase = opened.page.get_by_role("region", name="Phases").locator("li", has_text="Waiting")
            assert phase.locator(".mark.done").count() == 0
            assert opened.violations() == []
            why.get_by_role("link", name="hers").click()
            opened.page.get_by_text("changed by anna alone").wait_for()
    finally:
        ends.touch()
    for job in (hers, his, also_his):
        shown.cluster.result(job)


def test_a_job_that_an_admin_has_paused_is_not_offered_to_its_owner_to_go_on(
    browser: Browser, shown: Studio, operator: httpx.Client
) -> None:
    anna = operator.put("/v1/tokens/anna", json={}).json()["token"]
    job = shown.cluster.submit(SLOW, inputs=shown.cluster.files(200), name="held", owner="anna", mini_batch_size=1)
    operator.post(f"/v1/jobs/{job}:pause").raise_for_status()
    with opened_by(browser, shown, anna) as hers:
        hers.open(f"/jobs/{job}")
        hers.page.locator(".actions", has_text="paused by an admin").wait_for()
        hers.page.locator(".why", has_text="Ask an admin of this cluster").wait_for()
        assert hers.page.get_by_role("button", name="Go on").count() == 0
        assert hers.page.get_by_role("button", name="Cancel").count() == 1
    with opened_by(browser, shown) as admins:
        admins.open(f"/jobs/{job}")
        admins.page.get_by_role("button", name="Go on").wait_for()
    operator.post(f"/v1/jobs/{job}:cancel").raise_for_status()
    shown.cluster.result(job)


def test_what_somebody_has_sent_from_the_page_keeps_nobody_else_from_sending_it(
    browser: Browser, shown: Studio, operator: httpx.Client
) -> None:
    nothing = {"items": [], "total": 0, "by_state": {}, "next_page_token": None}
    for name in ("anna", "bert"):
        token = operator.put(f"/v1/tokens/{name}", json={"scopes": ["submit"]}).raise_for_status().json()["token"]
        with opened_by(browser, shown, token) as opened:
            opened.page.route("**/v1/job-summaries*", lambda route: route.fulfill(json=nothing))
            opened.open("/jobs")
            opened.page.get_by_role("button", name="Run the example job").click()
            opened.page.get_by_role("heading", name="first-job").wait_for()


def test_a_name_that_somebody_has_taken_keeps_nobody_from_the_example_job(opened: Tab) -> None:
    run_example_whose_name_is_taken(opened)
    opened.page.get_by_role("heading", name="first-job").wait_for()


def test_a_page_that_takes_no_other_name_is_found(opened: Tab) -> None:
    def served(route: Route) -> None:
        answer = route.fetch()
        route.fulfill(response=answer, body=answer.text().replace('["not_allowed","conflict"]', "[]"))

    opened.page.route("**/*.js", served)
    run_example_whose_name_is_taken(opened)
    opened.page.get_by_text("of bert").first.wait_for()


def run_example_whose_name_is_taken(opened: Tab) -> None:
    """Run the example job where somebody else has the name of its inputs."""
    nothing = {"items": [], "total": 0, "by_state": {}, "next_page_token": None}
    taken = {"type": "about:blank", "title": "Not allowed", "status": 403, "code": "not_allowed", "detail": "of bert"}
    opened.page.route("**/v1/job-summaries*", lambda route: route.fulfill(json=nothing))
    opened.page.route("**/v1/assets/data/first-job/versions/1", lambda route: route.fulfill(status=403, json=taken))
    opened.open("/jobs")
    opened.page.get_by_role("button", name="Run the example job").click()
