"""The first look at a finished job of a million mini-batches, and each click after that, in a real browser.

The server has just started and has read nothing of the job, and nothing of the page is in a cache. `first_look_s`: from
opening the job's page until it can be used; `whole_s`: until every record of the job is in the pictures; `click_ms`:
from a click on a tab, or on the map, until what it asks for is there. `calibration` is the CPU time of
`python -c "import fastapi, pydantic, redis, pandas, pyarrow"` here, by which seconds of other machines are scaled;
`server_cpu_s` is what the server has used until all was read.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from statistics import median
from typing import TYPE_CHECKING, Any, Final

from benchmarks import Size
from benchmarks.measure import own_cpu_seconds
from benchmarks.stage import Stage
from benchmarks.studio.page import SHOWN, cookie
from benchmarks.studio.records import finished
from benchmarks.studio.server import Server, serving
from tests.studio.chromium import chromium, missing

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

_IMPORTS: Final = "import fastapi, pydantic, redis, pandas, pyarrow"
_TABS: Final = ("Mini-batches", "Timeline", "Advice", "Logs", "Outputs", "Parameters", "Events", "Overview")
_ZOOMED: Final = """
() => new Promise((resolve, reject) => {
    const began = performance.now(), before = location.search;
    const enter = new KeyboardEvent("keydown", {key: "Enter", bubbles: true});
    document.querySelector(".heat-map [role=group]").dispatchEvent(enter);
    const look = () => {
        const isShown = location.search !== before && !document.querySelector(".loading");
        if (performance.now() - began > 60000) reject(new Error("the map stays as it is"));
        else if (isShown) resolve(performance.now() - began);
        else requestAnimationFrame(look);
    };
    requestAnimationFrame(() => requestAnimationFrame(look));
})
"""


def main(size: Size) -> dict[str, object]:
    """Measure; returns what the last line says."""
    count, rounds = {"tiny": (2_000, 1), "quick": (1_000_000, 3), "full": (1_000_000, 7)}[size]
    figures: dict[str, object] = {"mini_batches": count, "calibration": f"{calibration_s():.2f}"}
    if missing():
        return {**figures, "first_look_s": "not_measured"}
    with Stage() as stage:
        job = finished(stage, count)
        with chromium() as browser:
            visits = [_visit(browser, stage, job) for _ in range(rounds)]
    looks, wholes, cpus, clicks = zip(*visits, strict=True)
    each = [click for visit in clicks for click in visit.values()]
    slowest = max(clicks[0], key=lambda name: median(visit[name] for visit in clicks))
    return {
        **figures,
        "first_look_s": f"{median(looks):.2f}",
        "whole_s": f"{median(wholes):.2f}",
        "server_cpu_s": f"{median(cpus):.2f}",
        "click_ms": f"{median(each):.0f}",
        "slowest_click_ms": f"{median(visit[slowest] for visit in clicks):.0f}",
        "slowest_click": slowest,
    }


def calibration_s() -> float:
    """Seconds of CPU that the imports of a server take in one process, the best of three."""
    times = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-c", _IMPORTS], check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(times)


def _visit(browser: Browser, stage: Stage, job: str) -> tuple[float, float, float, dict[str, float]]:
    """Seconds until the page can be used, until all is read, CPU of the server for that, and milliseconds by click."""
    with serving(stage) as server:
        url, before_s = str(server.client.base_url), own_cpu_seconds(server.pid)
        context = browser.new_context(viewport={"width": 1280, "height": 900})
        try:
            context.add_cookies([cookie(server, url)])
            page = context.new_page()
            began = time.perf_counter()
            page.goto(f"{url}/jobs/{job}", wait_until="commit")
            look_s = float(page.evaluate(SHOWN, ["", "main svg"])) / 1000
            _wait_until_read(server, job)
            whole_s, cpu_s = time.perf_counter() - began, own_cpu_seconds(server.pid) - before_s
            clicks = _clicks(page)
        finally:
            context.close()
    print(f"  usable after {look_s:.2f} s, all read after {whole_s:.2f} s ({cpu_s:.2f} s of CPU)", flush=True)
    print("  " + ", ".join(f"{name} {took:.0f} ms" for name, took in clicks.items()), flush=True)
    return look_s, whole_s, cpu_s, clicks


def _wait_until_read(server: Server, job: str) -> None:
    """As the page does, which asks again a moment after an answer that lacks some of the records."""
    while _share(server, job) < 1:
        time.sleep(0.2)


def _share(server: Server, job: str) -> float:
    answer: dict[str, Any] = server.client.get(f"/v1/jobs/{job}/tiles").json()
    return float(answer["read_share"])


def _clicks(page: Page) -> dict[str, float]:
    clicks = {}
    for tab in _TABS:
        page.wait_for_timeout(300)  # nothing of the click before is under way
        clicks[tab.lower()] = float(page.evaluate(SHOWN, [tab, "main nav.tabs"]))
        if tab == "Mini-batches":
            page.locator(".heat-map [role=group]").press("ArrowRight")
            clicks["zoom"] = float(page.evaluate(_ZOOMED))
    return clicks
