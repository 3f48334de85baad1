"""Every view, of jobs that run and that have ended: what axe says in both color schemes, nothing from elsewhere,
and room for all of it in a narrow window.

Pictures of all are in build/studio-screenshots afterwards, to be looked through by people; `make pictures` writes
those of the docs anew.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

import httpx
import pytest

from tests.studio.chromium import NARROW, SCREENSHOTS, Tab, tab
from tests.studio.cluster import GOOD, TOKEN, Studio

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(300)]

WIDE: Final = (1440, 900)
SCHEMES: Final[tuple[Literal["light", "dark"], ...]] = ("light", "dark")
VIEWS: Final = {
    "jobs": "/jobs",
    "jobs-searched": "/jobs?q=one&state=failed&range=24h&order=items",
    "new": "/new",
    "again": "/new?from={good}&resume_from=1",
    "nodes": "/nodes",
    "schedules": "/schedules",
    "library": "/library?kind=data&name=reviews",
    "library-datastores": "/library?kind=datastores",
    "library-endpoints": "/library?kind=endpoints&name=scores",
    "library-environments": "/library?kind=environment",
    "people": "/people",
    "lost": "/nothing/here",
    "ended-overview": "/jobs/{good}",
    "ended-mini-batches": "/jobs/{good}/mini-batches?id=7",
    "ended-timeline": "/jobs/{good}/timeline",
    "ended-resources": "/jobs/{good}/resources",
    "ended-profile": "/jobs/{good}/profile",
    "ended-logs": "/jobs/{good}/logs",
    "ended-merged-logs": "/jobs/{good}/logs?merged=1&source=all",
    "ended-outputs": "/jobs/{good}/outputs?path=parallel_run_step.txt",
    "ended-advice": "/jobs/{good}/advice?price=2",
    "ended-parameters": "/jobs/{good}/parameters",
    "ended-events": "/jobs/{broken}/events",
    "failed-overview": "/jobs/{broken}",
    "pipeline": "/jobs/{pipeline}",
    "failed-pipeline": "/jobs/{failed_pipeline}",
    "pipeline-timeline": "/jobs/{pipeline}/timeline",
    "compare": "/compare?jobs={good},{broken}",
    "live-overview": "/jobs/{live}",
    "live-mini-batches": "/jobs/{live}/mini-batches?shade=time",
    "live-timeline": "/jobs/{live}/timeline",
    "live-resources": "/jobs/{live}/resources",
    "waiting": "/jobs/{waiting}",
    "live-logs": "/jobs/{live}/logs?path=user/stdout/node000/process000.stdout.txt",
}


CODES: Final = """
(() => {
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    const found = [];
    for (let text = texts.nextNode(); text; text = texts.nextNode())
        if (!text.parentElement.closest("pre, code, textarea, script, .log-lines, .merged"))
            found.push(...(text.data.match(/\\b[A-Z]{2,}(_[A-Z]+)+\\b/g) ?? []));
    return found;
})()
"""
"""Words like THRESHOLD_CROSSED in what is text of the page, and neither a log nor a program."""

PICTURES: Final = {"live-timeline": "timeline", "nodes": "nodes", "failed-overview": "failed"}
"""Views of which docs/web-page.md has a picture, with its name there."""
OF_PICTURES: Final = (1280, 800)


@pytest.fixture(scope="module")
def jobs(shown: Studio) -> Iterator[dict[str, str]]:
    """The jobs that are looked at, on a cluster that several people use, with one of each thing that it can have."""
    cluster = shown.cluster
    table, files = cluster.home / "reviews.csv", cluster.files(6)
    table.write_text("stars,text\n" + "".join(f"{each % 5 + 1},review {each}\n" for each in range(40)))
    job = {"name": "score", "code": str(cluster.code(GOOD)), "entry_script": "entry.py", "mini_batch_size": 2}
    reads = {**job, "inputs": {"data": {"path": "azureml:reviews:2"}}}
    trigger = {"type": "cron", "expression": "30 2 * * mon-fri", "time_zone": "Europe/Berlin"}
    things = {
        "/assets/data/reviews/versions": {"type": "uri_folder", "path": str(files), "description": "of last year"},
        "/assets/data/reviews/versions#": {"type": "uri_file", "path": str(table), "tags": {"stage": "silver"}},
        "/datastores/lake": {"type": "s3", "bucket": "our-lake", "region": "eu-central-1"},
        "/batch-endpoints/scores": {},
        "/batch-endpoints/scores/deployments/blue?default=true": {"job": {**reads, "inputs": {"data": str(files)}}},
        "/schedules/scores-at-night": {"trigger": trigger, "create_job": {**reads, "inputs": {"data": str(files)}}},
        "/computes/pool": {"type": "manual", "max_instances": 4},
        "/tokens/anna": {},
    }
    with httpx.Client(
        base_url=f"{shown.url}/v1", headers={"Authorization": f"Bearer {TOKEN}"}, trust_env=False, timeout=60
    ) as api:
        for path, body in things.items():
            api.request("POST" if "/assets/" in path else "PUT", path.rstrip("#"), json=body).raise_for_status()
        cluster.result(api.post("/schedules/scores-at-night:trigger").raise_for_status().json()["id"])
        invoked = api.post("/batch-endpoints/scores:invoke", json={"input": str(files)}).raise_for_status().json()["id"]
        waiting = cluster.submit(GOOD, inputs=files, name="waits for a node", compute="pool")
        cluster.result(invoked)
        yield {**shown.jobs, "waiting": waiting, "failed_pipeline": shown.failed_pipeline()}
        api.post(f"/jobs/{waiting}:cancel").raise_for_status()
        cluster.result(waiting)


@pytest.fixture(scope="module")
def opened(browser: Browser, shown: Studio) -> Iterator[Tab]:
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    with tab(browser, shown.url, cookies=[shown.cookie()]) as opened:
        yield opened


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_is_for_everybody_and_comes_from_here(
    opened: Tab, shown: Studio, jobs: dict[str, str], name: str, record_property: Callable[[str, object], None]
) -> None:
    opened.troubles.clear()
    opened.resize(*WIDE)
    opened.page.emulate_media(color_scheme="light")
    opened.open(VIEWS[name].format_map({**jobs, "live": shown.live()}))
    codes = opened.page.evaluate(CODES)
    assert codes == [], f"{name} speaks to people in codes of the server"
    rows = opened.page.locator("tr").evaluate_all("all => all.map((each) => getComputedStyle(each).display)")
    assert set(rows) <= {"table-row"}, f"a rule for something else makes a row of {name} something else"
    for scheme in SCHEMES:
        opened.page.emulate_media(color_scheme=scheme)
        violations = opened.violations(only_colors=scheme == "dark")
        record_property("axe", len(violations))
        assert violations == [], f"{name} in {scheme}"
        for size in (WIDE, NARROW):
            opened.resize(*size)
            assert opened.overflow() <= 0, f"{name} is wider than a window of {size[0]}"
            opened.page.screenshot(path=SCREENSHOTS / f"{name}-{size[0]}-{scheme}.png", full_page=True)
            record_property("views", 1)
        if scheme == "light" and name in PICTURES and (folder := os.environ.get("PARALLELRUN_PICTURES")):
            opened.resize(*OF_PICTURES)
            opened.page.screenshot(path=Path(folder) / f"{PICTURES[name]}.png")
        opened.resize(*WIDE)
    record_property("console_errors", len(opened.troubles))
    assert opened.troubles == []
