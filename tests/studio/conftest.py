"""What all tests of the page share: a browser, and a cluster."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.studio.chromium import chromium, require_browser
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
