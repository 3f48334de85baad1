"""Every view, live and after the end: what axe says in both color schemes, and whether it fits a narrow window.

Pictures of all are in build/studio-screenshots afterwards, to be looked through by people.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.studio.chromium import NARROW, SCREENSHOTS, WIDE, Tab, tab
from tests.studio.cluster import Studio

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.xdist_group("studio"), pytest.mark.timeout(300)]

PAGES = {"jobs": "/jobs", "nodes": "/nodes"}
TABS = ["", "mini-batches", "timeline", "logs"]


@pytest.fixture(scope="module")
def opened(browser: Browser, shown: Studio) -> Iterator[Tab]:
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    with tab(browser, shown.url, cookies=[shown.cookie()]) as opened:
        yield opened


@pytest.fixture(scope="module")
def live(shown: Studio) -> Iterator[str]:
    """A job that is at work."""
    job = shown.submit_slow()
    Studio.cluster.until(lambda: shown.cluster.registry.status(job).progress.done > 3, "it is at work", 60)
    yield job


def check(opened: Tab, name: str, path: str) -> None:
    """Look at a view in both color schemes and both widths."""
    opened.troubles.clear()
    opened.resize(*WIDE)
    opened.page.emulate_media(color_scheme="light")
    opened.open(path)
    for scheme in ("light", "dark"):
        opened.page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type] # a literal, in order
        opened.resize(*WIDE)
        assert opened.violations() == [], f"{name} in {scheme}"
        opened.page.screenshot(path=SCREENSHOTS / f"{name}-1280-{scheme}.png", full_page=True)
        opened.resize(*NARROW)
        assert opened.overflow() <= 0, f"{name} is wider than a narrow window"
        opened.page.screenshot(path=SCREENSHOTS / f"{name}-390-{scheme}.png", full_page=True)
    assert opened.troubles == []


@pytest.mark.parametrize("name", PAGES)
def test_pages(opened: Tab, name: str) -> None:
    check(opened, name, PAGES[name])


@pytest.mark.parametrize("part", TABS)
def test_parts_of_a_job_that_has_ended(opened: Tab, shown: Studio, part: str) -> None:
    check(opened, f"ended-{part or 'overview'}", f"/jobs/{shown.jobs['good']}/{part}")
