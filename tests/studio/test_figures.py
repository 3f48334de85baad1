"""A figure is the same wherever it stands: on the page, in REST, on the command line and in the report."""

from __future__ import annotations

import html
import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from parallelrun import Client
from parallelrun.models import Job
from parallelrun_core.limits.definition import Limit, limit_catalog
from tests.studio.chromium import Tab
from tests.studio.cluster import TOKEN, Studio

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(300)]

SUMS_UP = """
def run(mini_batch):
    return [str(len(mini_batch))]
"""

WAITS = """
from parallelrun.script import limit

async def run(mini_batch):
    async with limit("openai"):
        return [str(each) for each in mini_batch]
"""


@pytest.fixture
def client(shown: Studio) -> Iterator[Client]:
    with Client(shown.url, token=TOKEN) as client:
        yield client


def figures(opened: Tab) -> dict[str, str]:
    """The tiles of a job's page, by their names."""
    opened.page.locator(".figures dd").first.wait_for()
    return {
        each.locator("dt").inner_text(): " ".join(each.locator("dd").inner_text().split())
        for each in opened.page.locator(".figures > div").all()
    }


def said(shown: Studio, *words: str) -> str:
    """What the command line says."""
    command = [sys.executable, "-m", "parallelrun", "job", *words, "--url", shown.url, "--token", TOKEN]
    answer = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    return answer.stdout + answer.stderr


def test_what_has_failed_is_one_number_everywhere(opened: Tab, shown: Studio, client: Client, tmp_path: Any) -> None:
    job = client.jobs.get(shown.jobs["broken"])
    failed = job.progress.items_lost
    assert job.failure is not None
    assert job.failure.summary.startswith(f"{failed} items failed")

    opened.open(f"/jobs/{job.id}")
    assert f"{failed} failed" in figures(opened)["Items"]
    opened.page.get_by_text(f"{failed} items failed").first.wait_for()
    assert f"{failed} items failed" in said(shown, "show", job.id)
    report = tmp_path / "report.html"
    said(shown, "report", job.id, "--output", str(report))
    assert re.search(rf"<b>{failed}</b>\s*<span[^>]*>Failed items", report.read_text())


@pytest.mark.parametrize("name", ["good", "broken"])
def test_every_figure_of_a_job_is_the_same_wherever_it_is_shown(
    opened: Tab, shown: Studio, client: Client, tmp_path: Path, name: str
) -> None:
    job = client.jobs.get(shown.jobs[name])
    progress, pace = job.progress, job.pace
    assert pace is not None
    assert pace.items_per_s is not None
    assert job.started is not None
    assert job.ended is not None
    took_s = (datetime.fromisoformat(job.ended) - datetime.fromisoformat(job.started)).total_seconds()
    items, lost, failed = progress.items_decided, progress.items_lost, progress.failed
    page = opened.page

    opened.open(f"/jobs/{job.id}")
    tiles = figures(opened)
    assert tiles["Mini-batches"] == f"{progress.decided} of {progress.scheduled}"
    undecided = f"of {progress.items_found}" if progress.items_found > items else ""
    assert tiles["Items"] == " ".join(
        filter(None, [str(items), ", ".join(filter(None, [undecided, f"{lost} failed" if lost else ""]))])
    )
    # Of "of 60, 9 failed", only what has failed is red.
    assert page.locator(".figures > div", has_text="Items").locator(".bad").all_inner_texts() == (
        [f"{lost} failed"] if lost else []
    )
    assert tiles["Failed"].split()[0] == str(failed)
    assert per_second(tiles["Pace"]) == pytest.approx(pace.items_per_s, rel=0.05)
    assert seconds_of(tiles["Took"].partition(" waited")[0]) == pytest.approx(took_s, abs=0.51)
    assert tiles.get("Rows", str(progress.rows)).split()[0] == str(progress.rows)

    opened.open(f"/jobs?q={job.id}")
    row = page.locator("tbody tr")
    opened.until("document.querySelectorAll('tbody tr').length === 1")
    bar = row.locator("td.progress").inner_text()
    assert f"{progress.decided} / {progress.scheduled}" in bar
    assert (f"{failed} failed" in bar) == (failed > 0)
    assert row.locator("[data-label=items]").inner_text().split() == [str(items), *([str(lost), "failed"] * (lost > 0))]
    assert row.locator("[data-label=pace]").inner_text() == tiles["Pace"]
    assert tiles["Took"].partition(" waited")[0] in row.inner_text()

    in_words = said(shown, "show", job.id)
    assert f"{progress.decided}/{progress.scheduled} mini-batches" in in_words
    assert f"{failed} failed" in in_words
    assert f"{items}/{progress.items_found} items" in in_words or f"{items} items" in in_words

    path = tmp_path / "report.html"
    said(shown, "report", job.id, "--output", str(path))
    report = {title: value for value, title in re.findall(r"<b>([^<]*)</b>\s*<span[^>]*>([^<]*)", path.read_text())}
    assert report["Mini-batches"].partition(" of")[0] == str(progress.decided)
    assert (report["Items"], report["Failed items"]) == (str(items), str(lost))
    assert (report["Failed mini-batches"], report["Rows"]) == (str(failed), str(progress.rows))
    assert float(report["Items per second"].replace(",", "")) == pytest.approx(pace.items_per_s, rel=0.05)
    assert seconds_of(report["Duration"]) == pytest.approx(took_s, abs=0.51)

    whole = rest(shown, f"/jobs/{job.id}/figures")
    assert (whole["items"], whole["failed_mini_batches"], whole["rows"]) == (items, failed, progress.rows)
    assert whole["items_per_s"] == pytest.approx(pace.items_per_s, rel=0.02)
    if progress.items_found == progress.scheduled:  # one item in each mini-batch
        assert whole["mini_batches_per_s"] == pytest.approx(whole["items_per_s"])
    assert whole["took_s"] == pytest.approx(took_s, abs=0.01)
    # The curve ends where the tile stands.
    assert sum(rest(shown, f"/jobs/{job.id}/throughput")["items"]) == items
    (summary,) = rest(shown, f"/job-summaries?q={job.id}")["items"]
    counts = summary["counts"]
    assert (counts["items"], counts["items_failed"], counts["rows"]) == (items, lost, progress.rows)
    assert (counts["done"], counts["failed"], counts["total"]) == (progress.done, failed, progress.scheduled)


def per_second(text: str) -> float:
    """`7.2/s`, `1.57K/s`."""
    number = text.removesuffix("/s")
    return float(number.removesuffix("K")) * (1000 if number.endswith("K") else 1)


def seconds_of(text: str) -> float:
    """`5.2 s`, `310 ms`, `1 min 05 s`."""
    units = {"ms": 0.001, "s": 1, "min": 60, "h": 3600}
    return sum(float(number) * units[unit] for number, unit in re.findall(r"([\d.]+) (ms|s|min|h)", text))


def rest(shown: Studio, path: str) -> Any:
    headers = {"Authorization": f"Bearer {TOKEN}"}
    return httpx.get(f"{shown.url}/v1{path}", headers=headers, trust_env=False, timeout=60).raise_for_status().json()


def test_items_without_a_row_of_their_own_are_not_called_failed(opened: Tab, shown: Studio) -> None:
    job = shown.cluster.submit(
        SUMS_UP, inputs=shown.cluster.files(60), name="sums up", mini_batch_size=20, error_threshold=-1
    )
    shown.cluster.result(job)
    opened.open(f"/jobs/{job}")
    opened.page.get_by_text("made 3 rows of 60 items").wait_for()
    assert opened.page.locator(".job-head .bad").count() == 0
    assert figures(opened)["Items"] == "60"
    assert sum(rest(shown, f"/jobs/{job}/throughput")["items"]) == 60, "the curve of what is done reaches them all"
    opened.page.get_by_role("group", name=re.compile(r"^Items done so far, .*: 60\.")).wait_for()
    opened.open("/jobs?q=sums")
    opened.page.get_by_role("link", name="sums up").wait_for()
    assert opened.page.locator("tr .bad").count() == 0


def test_a_job_that_waits_for_a_limit_says_so_everywhere_in_the_same_words(
    opened: Tab, shown: Studio, tmp_path: Path
) -> None:
    limit_catalog(shown.cluster.root).define(Limit(name="openai", requests_per_minute=120))
    job = shown.cluster.submit(
        WAITS, inputs=shown.cluster.files(90), name="waits", mini_batch_size=1, mini_batches_in_flight=40,
        rate_limits=["openai"],
    )  # fmt: skip
    shown.cluster.until(lambda: shown.cluster.registry.status(job).progress.done > 5, "some have waited", 60)
    words = re.compile(r"waits for openai (9\d|100) %: more nodes won't help")
    opened.open(f"/jobs/{job}")
    opened.page.locator(".job-head").get_by_text(words).wait_for()
    assert opened.violations() == []
    assert words.search(said(shown, "show", job))
    assert words.search(said(shown, "explain", job))
    metrics = httpx.get(
        f"{shown.url}/metrics", headers={"Authorization": f"Bearer {TOKEN}"}, trust_env=False, timeout=60
    ).text
    assert re.search(r'parallelrun_limit_wait_seconds\{limit="openai"\} [\d.]+', metrics)

    limit_catalog(shown.cluster.root).define(Limit(name="openai", requests_per_minute=6000))
    assert shown.cluster.result(job, timeout_s=120).progress.waits_s["openai"] > 0
    advice = re.compile(r"Mini-batches wait for openai (9\d|100) % of their time: more nodes won't help\.")
    opened.open(f"/jobs/{job}")
    opened.page.get_by_text(advice).first.wait_for()
    assert advice.search(said(shown, "advise", job))
    said(shown, "report", job, "--output", str(tmp_path / "report.html"))
    report = html.unescape((tmp_path / "report.html").read_text())
    assert advice.search(report)
    assert "waiting for limits" in report
    assert re.search(r"openai (9\d|100) % \(", (shown.cluster.folder(job).logs / "job_result.txt").read_text())


def test_steps_of_a_pipeline_are_counted_by_how_they_ended(opened: Tab, shown: Studio) -> None:
    job = shown.failed_pipeline()
    opened.open(f"/jobs/{job}")
    assert figures(opened)["Steps done"] == "1 of 3 1 failed, 1 skipped"
    opened.open("/jobs?q=fails in the middle")
    opened.page.locator("td.progress", has_text="1 / 3 steps done · 1 failed").wait_for()
    opened.open(f"/jobs/{job}")
    cross = opened.page.locator(".plane .mark.failed .inner").first
    opened.page.locator(".step.failed", has_text="middle").wait_for()
    opened.page.locator(".plane path[marker-end]").first.wait_for(state="attached")
    assert cross.evaluate("each => getComputedStyle(each.previousElementSibling).fill") != "none"


def test_the_steps_of_a_pipeline_are_shown_in_time(opened: Tab, shown: Studio) -> None:
    opened.open(f"/jobs/{shown.failed_pipeline()}/timeline")
    opened.page.locator(".gantt .lane .failed").wait_for()
    assert opened.page.locator(".gantt .lane i").count() == 2
    assert opened.violations() == []
    opened.page.get_by_role("link", name="Open its log").click()
    opened.page.get_by_role("region", name=re.compile("Lines of")).wait_for()


def test_pace_and_time_left_are_of_what_is_decided_since_a_resume(opened: Tab, shown: Studio, client: Client) -> None:
    job = shown.submit_slow(200)
    shown.cluster.until(lambda: client.jobs.get(job).progress.done >= 30, "it is at work", 90)
    client.jobs.cancel(job)
    shown.cluster.until(lambda: client.jobs.get(job).has_ended, "it is canceled", 60)
    opened.open(f"/jobs/{job}")
    phases = opened.page.get_by_role("region", name="Phases")
    assert "at work" not in phases.inner_text()

    client.jobs.resume(job)
    opened.page.reload()

    def paced() -> Job | None:
        each = client.jobs.get(job)
        return each if each.pace is not None and each.pace.left_s is not None else None

    shown.cluster.until(lambda: paced() is not None, "its pace is known", 60)
    resumed = paced()
    assert resumed is not None
    assert resumed.pace is not None
    assert resumed.pace.items_per_s is not None
    assert resumed.pace.left_s is not None
    assert resumed.pace.items_per_s <= 7.5  # two workers, 0.3 s each: 6.7 a second
    assert resumed.pace.left_s >= (200 - resumed.progress.decided) / 7.5
    opened.page.get_by_text(re.compile(r"left: it ends about \d\d:\d\d")).wait_for()
    pace = float(figures(opened)["Pace"].removesuffix("/s"))
    opened.open(f"/jobs?q={job}")
    opened.page.get_by_text(re.compile(r"^ends about \d\d:\d\d")).wait_for()
    assert 0 < pace <= 7.5
    top = said(shown, "top", job, "--once")
    in_terminal = re.search(r"([\d.]+) items/s", top)
    assert in_terminal is not None, top
    assert 0 < float(in_terminal[1]) <= 7.5
    client.jobs.cancel(job)


def test_a_job_without_workers_waits_wherever_it_is_shown(opened: Tab, shown: Studio, client: Client) -> None:
    page = opened.page
    shown.cluster.kill("node000")
    try:
        job = shown.cluster.submit(SUMS_UP, inputs=shown.cluster.files(4), name="waits", error_threshold=-1)
        opened.open(f"/jobs/{job}")
        page.get_by_text(re.compile("Waits for workers for")).wait_for()
        page.get_by_text("Why: no node is there").wait_for()
        page.locator(".why code", has_text="parallelrun-agent").first.wait_for()
        page.locator(".heading .state", has_text="waiting for workers").wait_for()
        assert "Waits for" in figures(opened)
        pace = client.jobs.get(job).pace
        assert pace is not None
        assert (pace.standing, pace.ran_s) == ("waiting_for_workers", 0)
        opened.open("/jobs?q=waits")
        page.locator("tr", has_text="waits").get_by_text("waiting for workers").wait_for()
        page.locator(".status-line", has_text="1 waiting for workers").wait_for()
        assert page.locator(".status-line", has_text="0 jobs at work").count() == 1
        page.locator(".choices a", has_text="(1 waiting)").wait_for()
        assert rest(shown, f"/job-summaries?q={job}")["waiting"] == 1
        assert "waiting for workers" in next(line for line in said(shown, "list").splitlines() if job in line)
        assert "waiting for workers" in said(shown, "show", job)
    finally:
        shown.cluster.start("node000")
    shown.cluster.result(job)
    opened.open(f"/jobs/{job}")
    assert "waited" in figures(opened)["Took"]


def test_nodes_name_the_jobs_that_have_their_workers(opened: Tab, shown: Studio) -> None:
    shown.live()
    opened.open("/nodes")
    jobs = opened.page.get_by_role("list", name="Jobs that node000 works for")
    jobs.get_by_role("link", name="long one").wait_for()
    assert "2 workers" in jobs.inner_text()
    assert jobs.get_by_role("listitem").count() == 1, "no job that has no worker there"


def test_times_are_local_or_in_utc_and_say_so(browser: Browser, shown: Studio) -> None:
    context = browser.new_context(timezone_id="America/New_York")
    context.add_cookies([shown.cookie()])
    page = context.new_page()
    page.goto(f"{shown.url}/jobs/{shown.jobs['good']}")
    submitted = page.locator(".job-head", has_text="submitted").get_by_text(re.compile("submitted .* GMT-[45]"))
    submitted.wait_for()
    page.get_by_role("button", name=re.compile("Times are local")).click()
    page.locator(".job-head").get_by_text(re.compile("submitted .* UTC")).wait_for()
    page.reload()
    page.locator(".job-head").get_by_text(re.compile("submitted .* UTC")).wait_for()
    page.goto(f"{shown.url}/jobs/{shown.jobs['good']}/logs")
    page.get_by_text("times in UTC").wait_for()
    context.close()


def test_what_is_done_so_far_leads_to_the_end_that_is_expected(opened: Tab, shown: Studio) -> None:
    page = opened.page
    opened.open(f"/jobs/{shown.live()}")
    page.get_by_role("group", name=re.compile("Items done so far.*all of them about")).wait_for()
    page.locator(".line-chart path.dashed").wait_for(state="attached")
    with page.expect_request(re.compile("least_items=10")) as asked:
        page.get_by_role("button", name="Items a second").click()
    throughput = asked.value.response()
    assert throughput is not None
    items = throughput.json()["items"]
    assert len(items) == 1 or sum(items) / len(items) >= 10


def test_a_job_of_a_compute_without_nodes_says_so_and_not_who_has_other_workers(
    opened: Tab, shown: Studio, client: Client
) -> None:
    client.computes.create({"name": "empty-pool", "type": "manual"})
    live = shown.live()
    job = shown.cluster.submit(SUMS_UP, inputs=shown.cluster.files(4), name="pooled", compute="empty-pool")
    try:
        opened.open(f"/jobs/{job}")
        why = opened.page.locator(".why")
        why.get_by_text("compute 'empty-pool' has no node yet").wait_for()
        why.locator("code", has_text="parallelrun-agent --compute empty-pool").wait_for()
        assert not shown.cluster.folder(live).has_ended
        assert "at work are" not in why.inner_text(), "those workers are of no use to it"
    finally:
        client.jobs.cancel(job)
        shown.cluster.result(job)
        client.computes.delete("empty-pool")


def test_a_job_whose_init_fails_has_run_no_mini_batch(opened: Tab, shown: Studio) -> None:
    job = shown.cluster.submit("def init():\n    no_such_name\ndef run(mini_batch):\n    return mini_batch\n",
                               inputs=shown.cluster.files(4), name="typo")  # fmt: skip
    shown.cluster.result(job)
    opened.open(f"/jobs/{job}/mini-batches")
    opened.page.get_by_text("No mini-batch was run: init() failed.").wait_for()
    assert opened.page.locator(".key").inner_text().split("\n") == ["done", "failed", "not run"]
    opened.open(f"/jobs/{job}")
    opened.page.get_by_role("region", name="Phases").wait_for()
    assert figures(opened)["Items"] == "0 of 4"
