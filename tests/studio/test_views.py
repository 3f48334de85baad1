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

import pytest

from tests.studio.chromium import NARROW, SCREENSHOTS, Tab, tab
from tests.studio.cluster import Studio

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
    "library": "/library?kind=data&name=rows",
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
    "pipeline-timeline": "/jobs/{pipeline}/timeline",
    "compare": "/compare?jobs={good},{broken}",
    "live-overview": "/jobs/{live}",
    "live-mini-batches": "/jobs/{live}/mini-batches?shade=time",
    "live-timeline": "/jobs/{live}/timeline",
    "live-resources": "/jobs/{live}/resources",
    "live-logs": "/jobs/{live}/logs?path=user/stdout/node000/process000.stdout.txt",
}


PICTURES: Final = {"live-timeline": "timeline", "nodes": "nodes"}
"""Views of which docs/web-page.md has a picture, with its name there."""
OF_PICTURES: Final = (1280, 800)


@pytest.fixture(scope="module")
def opened(browser: Browser, shown: Studio) -> Iterator[Tab]:
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    with tab(browser, shown.url, cookies=[shown.cookie()]) as opened:
        yield opened


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_is_for_everybody_and_comes_from_here(
    opened: Tab, shown: Studio, name: str, record_property: Callable[[str, object], None]
) -> None:
    opened.troubles.clear()
    opened.resize(*WIDE)
    opened.page.emulate_media(color_scheme="light")
    opened.open(VIEWS[name].format_map({**shown.jobs, "live": shown.live()}))
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
