"""Schedules, assets, datastores and endpoints have pages, and lead to their jobs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from tests.studio.chromium import NARROW, WIDE, Tab
from tests.studio.cluster import GOOD, TOKEN, Studio

if TYPE_CHECKING:
    from playwright.sync_api import Route

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(300)]


def ask(shown: Studio, method: str, path: str, body: Any) -> None:
    answer = httpx.request(
        method, f"{shown.url}/v1{path}", json=body, headers={"Authorization": f"Bearer {TOKEN}"}, timeout=60
    )
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
    card.locator("dl > div", has_text="Next").get_by_text(re.compile(r"\d\d:\d\d:\d\d")).wait_for()
    card.get_by_role("button", name="Run now").click()
    page.get_by_role("heading", name="by a schedule").wait_for()

    opened.open("/schedules")
    last = card.get_by_role("list", name="Last times of every-night").get_by_role("listitem")
    last.filter(has_text="completed").filter(has_text="run by hand").wait_for()
    card.get_by_role("button", name="Pause").click()
    card.get_by_text("paused").wait_for()
    card.get_by_role("link", name="by a schedule").click()
    page.get_by_role("link", name="schedule every-night").first.wait_for()
    page.get_by_role("link", name="by a schedule").first.wait_for()


def test_a_job_is_scheduled_from_its_page_and_the_schedule_changed(opened: Tab, shown: Studio) -> None:
    page = opened.page
    job = shown.cluster.submit(GOOD, inputs=shown.cluster.files(4), name="to be scheduled", mini_batch_size=2)
    shown.cluster.result(job)
    opened.open(f"/jobs/{job}")
    page.get_by_role("link", name="Schedule …").click()
    dialog = page.get_by_role("dialog", name="New schedule")
    document = dialog.get_by_role("textbox", name="Document: New schedule")
    assert f"create_job: azureml:{job}" in document.input_value()
    dialog.get_by_label("Name").fill("of-a-job")
    document.fill(document.input_value().replace("30 2", "30 99"))
    dialog.get_by_role("button", name="Create").click()
    dialog.get_by_role("alert").get_by_text("99").first.wait_for()
    assert opened.violations() == []
    document.fill(document.input_value().replace("30 99", "30 3"))
    dialog.get_by_role("button", name="Create").click()
    card = page.get_by_role("region", name="of-a-job")
    card.get_by_text("30 3 * * *").wait_for()
    assert page.url == f"{shown.url}/schedules"
    card.get_by_role("button", name="Run now").click()
    page.wait_for_url("**/jobs/job_*")
    shown.cluster.result(page.url.rpartition("/")[2])

    opened.open("/schedules")
    card.get_by_role("button", name="Edit of-a-job").click()
    document = page.get_by_role("dialog").get_by_role("textbox", name="Document: Edit of-a-job")
    document.fill(document.input_value().replace("30 3", "45 4"))
    page.get_by_role("dialog").get_by_role("button", name="Change").click()
    card.get_by_text("45 4 * * *").wait_for()
    ask(shown, "DELETE", "/schedules/of-a-job", None)


def test_a_schedule_says_which_of_its_jobs_have_failed(opened: Tab, shown: Studio) -> None:
    code = shown.cluster.home / "with-a-typo"
    code.mkdir()
    (code / "entry.py").write_text("import nothing_of_this_name\ndef run(mini_batch): ...\n")
    files = {"data": {"path": str(shown.cluster.files(2))}}
    job = {"name": "with a typo", "entry_script": "entry.py", "code": str(code), "inputs": files}
    trigger = {"type": "recurrence", "frequency": "day", "interval": 2, "start_time": "2125-01-01T00:00:00Z"}
    ask(shown, "PUT", "/schedules/fails", {"trigger": trigger, "create_job": job})
    page = opened.page
    opened.open("/schedules")
    card = page.get_by_role("region", name="fails")
    card.get_by_text("every 2 days (UTC), from 2125-01-01T00:00:00Z").wait_for()
    card.get_by_role("button", name="Run now").click()
    page.wait_for_url("**/jobs/job_*")
    shown.cluster.result(page.url.rpartition("/")[2])
    opened.open("/schedules")
    last = card.get_by_role("list", name="Last times of fails").get_by_role("listitem")
    last.locator(".state.failed").wait_for()
    assert last.locator(".mark.done").count() == 0
    opened.resize(*NARROW)
    assert opened.overflow() <= 0
    ask(shown, "DELETE", "/schedules/fails", None)


def test_assets_are_shown_with_their_versions(opened: Tab, shown: Studio) -> None:
    page = opened.page
    version = {"type": "uri_folder", "path": str(shown.cluster.files(4)), "tags": {"stage": "silver"}}
    ask(shown, "POST", "/assets/data/rows/versions", {**version, "description": "rows of words"})
    opened.open("/library")
    page.get_by_role("link", name="rows", exact=True).click()
    page.get_by_role("button", name="Copy azureml:rows:1").wait_for()
    versions = page.get_by_role("region", name="Versions of rows")
    versions.get_by_text("stage=silver").wait_for()
    versions.get_by_text("rows of words").wait_for()
    page.get_by_role("heading", name="Preview of version 1").wait_for()
    page.get_by_text("4 files").wait_for()
    table = shown.cluster.home / "sales.csv"
    table.write_text("city,sales\n" + "".join(f"city {each % 7},{each}\n" for each in range(30)))
    ask(shown, "POST", "/assets/data/sales/versions", {"type": "uri_file", "path": str(table)})
    opened.open("/library?kind=data&name=sales")
    page.get_by_role("region", name="Table", exact=True).get_by_role("button", name="sales").click()
    page.get_by_role("img", name="sales: 0 to 29").wait_for()
    assert opened.violations() == []
    opened.open("/library?kind=data&name=rows")
    inputs = {"data": {"path": "azureml:rows:1"}}
    job = shown.cluster.submit(GOOD, inputs=shown.cluster.files(4), name="of no asset")
    body = {"name": "of an asset", "entry_script": "entry.py", "code": str(shown.cluster.code(GOOD)), "inputs": inputs}
    ask(shown, "POST", "/jobs", body)
    page.get_by_role("link", name="jobs that use it").click()
    page.get_by_role("link", name="of an asset").wait_for()
    assert page.get_by_role("link", name="of no asset").count() == 0
    shown.cluster.result(job)
    opened.open("/library")
    page.get_by_role("button", name="Datastores").click()
    page.get_by_role("heading", name="Datastores").wait_for()
    page.get_by_role("button", name="Batch endpoints").click()
    page.get_by_role("heading", name="Batch endpoints").wait_for()


def test_a_compute_is_made_and_changed(opened: Tab, shown: Studio) -> None:
    page = opened.page
    opened.open("/nodes")
    page.get_by_role("button", name="New compute").click()
    dialog = page.get_by_role("dialog", name="New compute")
    dialog.get_by_label("Name").fill("by-hand")
    document = dialog.get_by_role("textbox", name="Document: New compute")
    document.fill("type: manual\nmax_instances: many\n")
    dialog.get_by_role("button", name="Create").click()
    dialog.get_by_role("alert").get_by_text("max_instances").first.wait_for()
    assert opened.violations() == []
    document.fill("type: manual\nmax_instances: 2\n")
    dialog.get_by_role("button", name="Create").click()
    row = page.get_by_role("row", name="by-hand")
    row.get_by_text("manual").wait_for()

    def without_luck(route: Route) -> None:
        answer = route.fetch().json()
        status = {
            "ready": 0,
            "wanted": 2,
            "launching": 0,
            "leaving": 0,
            "failures": 3,
            "why": "no capacity in this zone",
        }
        answer["items"] = [{**each, "status": status} for each in answer["items"]]
        route.fulfill(json=answer)

    page.route("**/v1/computes", without_luck)
    page.reload()
    row.get_by_text("no capacity in this zone").wait_for()
    row.get_by_text("3 launches in a row have failed").wait_for()
    page.unroute_all()
    row.get_by_role("button", name="Edit by-hand").click()
    dialog = page.get_by_role("dialog", name="Edit by-hand")
    document = dialog.get_by_role("textbox", name="Document: Edit by-hand")
    document.fill(document.input_value().replace("2", "5"))
    dialog.get_by_role("button", name="Change").click()
    row.get_by_role("cell", name="5", exact=True).wait_for()
    ask(shown, "DELETE", "/computes/by-hand", None)


def test_a_datastore_is_made_on_the_page(opened: Tab, shown: Studio) -> None:
    page = opened.page
    opened.open("/library?kind=datastores")
    page.get_by_role("button", name="New datastore").click()
    dialog = page.get_by_role("dialog", name="New datastore")
    dialog.get_by_label("Name").fill("pictures")
    dialog.get_by_role("textbox", name="Document: New datastore").fill("type: s3\nbucket: our-pictures\n")
    dialog.get_by_role("button", name="Create").click()
    page.get_by_role("row", name="pictures").get_by_text("our-pictures").wait_for()
    page.get_by_role("button", name="Test pictures").click()
    answer = page.get_by_role("region", name="Test of pictures").get_by_role("listitem")
    answer.get_by_text("There are no credentials for S3 here").or_(answer.get_by_text("refused")).wait_for()
    assert opened.violations() == []
    ask(shown, "DELETE", "/datastores/pictures", None)


def test_a_batch_endpoint_is_invoked_and_leads_to_its_job(opened: Tab, shown: Studio) -> None:
    page = opened.page
    job = {
        "name": "of an endpoint",
        "entry_script": "entry.py",
        "code": str(shown.cluster.code(GOOD)),
        "inputs": {"data": {"path": str(shown.cluster.files(4))}},
        "mini_batch_size": 2,
    }
    ask(shown, "PUT", "/batch-endpoints/scores", {})
    ask(shown, "PUT", "/batch-endpoints/scores/deployments/blue?default=true", {"job": job})
    opened.open("/library?kind=endpoints")
    page.get_by_role("link", name="scores", exact=True).click()
    deployments = page.get_by_role("region", name="Deployments of scores")
    deployments.get_by_role("row", name="blue").get_by_text("default").wait_for()
    deployments.get_by_role("button", name="Invoke blue of scores").click()
    opened.resize(*NARROW)
    assert opened.overflow() <= 0
    opened.resize(*WIDE)
    dialog = page.get_by_role("dialog", name="Invoke blue of scores")
    document = dialog.get_by_role("textbox", name="Document: Invoke blue of scores")
    assert document.input_value().startswith("deployment_name: blue\n")
    document.fill(document.input_value().replace("/path/to/the/files", str(shown.cluster.files(6))))
    assert opened.violations() == []
    dialog.get_by_role("button", name="Invoke", exact=True).click()
    page.wait_for_url("**/jobs/job_*")
    page.get_by_role("link", name="endpoint scores").first.wait_for()
    shown.cluster.result(page.url.rpartition("/")[2])
