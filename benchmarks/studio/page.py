"""The page of one job in Chromium, each time as somebody who has never seen it: nothing of it is in a cache."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, Any, Final

from benchmarks.studio.server import Server
from tests.studio.chromium import chromium, missing

if TYPE_CHECKING:
    from playwright.sync_api import Browser

SHOWN: Final = """
([tab, wanted]) => new Promise(resolve => {
    const began = tab ? performance.now() : 0;
    if (tab) [...document.querySelectorAll("main a")].find(link => link.textContent === tab).click();
    const look = () => {
        const isShown = document.querySelector("h1") && document.querySelector(wanted);
        if (isShown && !document.querySelector(".loading")) resolve(performance.now() - began);
        else requestAnimationFrame(look);
    };
    requestAnimationFrame(() => requestAnimationFrame(look));  // what was shown before is gone by then
})
"""
"""The milliseconds from a click until all that it asks for is there; the first is that on a link to the page."""
_TABS: Final = {"map": "Mini-batches", "timeline": "Timeline"}
_FIGURES: Final = ("usable_s", "kb", "map_s", "timeline_s", "all_kb", "heap_mb")


def measured(server: Server, job: str, visits: int) -> dict[str, object]:
    """Medians: seconds until the page can be used, until the map of all mini-batches is there, and the timeline of all
    workers; thousands of bytes for the first, and for all; MB of memory of its scripts after that."""
    if missing():
        return dict.fromkeys(_FIGURES, "not_measured")
    with chromium() as browser:
        seen = [_visit(browser, server, job) for _ in range(visits)]
    medians = [median(values) for values in zip(*seen, strict=True)]
    figures = {name: f"{value:.2f}" for name, value in zip(_FIGURES, medians, strict=True)}
    print("  page: " + " ".join(f"{name}={value}" for name, value in figures.items()), flush=True)
    return dict(figures)


def _visit(browser: Browser, server: Server, job: str) -> list[float]:
    url = str(server.client.base_url)
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    try:
        context.add_cookies([cookie(server, url)])
        page = context.new_page()
        tools, sizes = context.new_cdp_session(page), list[float]()

        def add(event: dict[str, Any]) -> None:
            sizes.append(event["encodedDataLength"])

        tools.on("Network.loadingFinished", add)
        tools.send("Network.enable")
        page.goto(f"{url}/jobs/{job}")
        usable_ms = float(page.evaluate(SHOWN, ["", "main svg"]))
        first_kb = sum(sizes) / 1000
        tabs_ms = [float(page.evaluate(SHOWN, [tab, "main canvas"])) for tab in _TABS.values()]
        tools.send("HeapProfiler.collectGarbage")
        heap = float(tools.send("Runtime.getHeapUsage")["usedSize"])
    finally:
        context.close()
    return [usable_ms / 1000, first_kb, *(took / 1000 for took in tabs_ms), sum(sizes) / 1000, heap / 1e6]


def cookie(server: Server, url: str) -> Any:
    answer = server.client.post("/v1/session", json={"token": server.token}).raise_for_status()
    name, _, value = answer.headers["set-cookie"].partition(";")[0].partition("=")
    server.client.cookies.clear()  # the other measurements go on with the token
    return {"name": name, "value": value, "url": url}
