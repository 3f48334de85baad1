"""What all tests of the page share: a browser, and a cluster."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.studio.chromium import Tab, chromium, require_browser, tab
from tests.studio.cluster import Studio, studio

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.fixture(scope="package")
def shown() -> Iterator[Studio]:
    """The cluster, after the browser was looked for: without one, there is no need of it."""
    require_browser()
    with studio() as running:
        yield running


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Ends with the module: while it runs, nothing else in this process can have an event loop."""
    with chromium() as running:
        yield running


@pytest.fixture
def opened(browser: Browser, shown: Studio) -> Iterator[Tab]:
    """A tab that is signed in; a test fails if anything went wrong in it."""
    with tab(browser, shown.url, cookies=[shown.cookie()]) as opened:
        yield opened
    assert opened.troubles == []


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say in one line what the tour of the page has found: views that were looked at in each width and color scheme,
    points that are looked after, violations and errors."""
    reports = [
        each
        for outcome in ("passed", "failed")
        for each in terminalreporter.getreports(outcome)
        if each.when == "call" and each.nodeid.startswith("tests/studio/")
    ]
    sums = Counter[str]()
    for report in reports:
        for name, value in report.user_properties:
            sums[name] += int(str(value))
    if sums["views"]:
        points = sum(each.passed and "test_views" not in each.nodeid for each in reports)
        found = f"axe={sums['axe']} console_errors={sums['console_errors']}"
        terminalreporter.write_line(f"page views={sums['views']} points={points} {found}")
