"""A real browser: the system's Chromium, driven by Playwright, which has an environment of its own."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal
from urllib.parse import urlsplit

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

ROOT: Final = Path(__file__).parents[2]
DRIVER: Final = ROOT / ".environments" / "browser"
AXE: Final = ROOT / "studio" / "node_modules" / "axe-core" / "axe.min.js"
SCREENSHOTS: Final = ROOT / "build" / "studio-screenshots"
WIDE: Final = (1280, 900)
NARROW: Final = (390, 844)
READY_MS: Final = 120_000
"""A machine on which much else runs at the same time takes long."""
_RULES: Final = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


def _program() -> str | None:
    return next((path for name in ("chromium", "chromium-browser") if (path := shutil.which(name))), None)


def missing() -> list[str]:
    """What a browser lacks here, and how to get it."""
    return [
        what
        for what, is_there in {
            "Chromium (Debian: apt-get install chromium)": _program() is not None,
            "what drives it (make .environments/browser/ready)": (DRIVER / "ready").exists(),
            "axe (needs npm: make studio/node_modules/ready)": AXE.exists(),
        }.items()
        if not is_there
    ]


def require_browser() -> None:
    """Skip the test if a part of a browser is missing; in CI, that is a failure."""
    if parts := missing():
        reason = f"missing: {', '.join(parts)}"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)


@contextmanager
def chromium() -> Iterator[Browser]:
    """A running browser; skips a test where there is none."""
    require_browser()
    packages = str(next((DRIVER / "lib").glob("python3.*/site-packages")))
    if packages not in sys.path:
        sys.path.append(packages)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        # As root, Chromium runs only without its sandbox; its shared memory is too small in some containers.
        browser = driver.chromium.launch(
            executable_path=_program(), args=["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"]
        )
        yield browser
        browser.close()


@dataclass
class Tab:
    """A tab, and what went wrong in it."""

    page: Page
    url: str
    """Of the server."""
    troubles: list[str] = field(default_factory=list)
    """Errors of scripts, refusals by the content security policy, dialogs that a page has opened, foreign requests."""

    def open(self, path: str) -> None:
        """Open an address, and wait until there is nothing that loads."""
        self.page.goto(f"{self.url}{path}")
        self.settle()

    def settle(self) -> None:
        """Wait until what is shown has been loaded."""
        self.page.locator("h1").first.wait_for(state="attached", timeout=READY_MS)
        self.page.locator(".loading").first.wait_for(state="detached", timeout=READY_MS)

    def until(self, expression: str, argument: object = None) -> None:
        """Wait until JavaScript is true on the page.

        Playwright's own `wait_for_function` asks again in the page, whose content security policy forbids it.
        """
        deadline = time.monotonic() + READY_MS / 1000
        while not self.page.evaluate(expression, argument):
            assert time.monotonic() < deadline, f"not within {READY_MS / 1000:.0f} s: {expression}"
            self.page.wait_for_timeout(50)

    def resize(self, width: int, height: int) -> None:
        self.page.set_viewport_size({"width": width, "height": height})

    def overflow(self) -> int:
        """By how many pixels the page is wider than its window."""
        return int(self.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"))

    def violations(self, *, only_colors: bool = False) -> list[str]:
        """What axe says of the page as it is now; or only of its colors, if the rest is known."""
        if not self.page.evaluate("'axe' in window"):
            self.page.evaluate(AXE.read_text(encoding="utf-8"))
        # From the top: what has been scrolled below the head of the page is no small target.
        self.page.evaluate("scrollTo(0, 0)")
        rules = ["color-contrast"] if only_colors else _RULES
        result = self.page.evaluate("rules => axe.run({runOnly: rules, resultTypes: ['violations']})", rules)
        return [
            f"{each['id']}: {node['target']} {node['failureSummary']}"
            for each in result["violations"]
            for node in each["nodes"]
        ]


Scheme = Literal["light", "dark"]


@contextmanager
def tab(
    browser: Browser,
    url: str,
    *,
    scheme: Scheme = "light",
    cookies: list[Any] | None = None,
    size: tuple[int, int] = WIDE,
) -> Iterator[Tab]:
    """A tab of a browser of its own; nothing of it is left afterwards."""
    context = browser.new_context(color_scheme=scheme, viewport={"width": size[0], "height": size[1]})
    if cookies:
        context.add_cookies(cookies)
    page = context.new_page()
    page.set_default_timeout(READY_MS)
    opened = Tab(page, url)
    page.on("pageerror", lambda error: opened.troubles.append(f"script: {error}"))
    page.on("dialog", lambda dialog: _dismiss(opened, dialog))
    page.on("request", lambda request: _check_origin(opened, request.url))
    page.on("console", lambda message: _check_message(opened, message.type, message.text))
    try:
        yield opened
    finally:
        context.close()


def _dismiss(opened: Tab, dialog: Any) -> None:
    opened.troubles.append(f"dialog: {dialog.message}")
    dialog.dismiss()


def _check_origin(opened: Tab, url: str) -> None:
    parts = urlsplit(url)
    if parts.scheme in ("http", "https", "ws", "wss") and parts.netloc != urlsplit(opened.url).netloc:
        opened.troubles.append(f"request to elsewhere: {url}")


def _check_message(opened: Tab, kind: str, text: str) -> None:
    # A request that is refused, or not answered, is a message, too: some tests are about that.
    if kind in ("error", "warning") and not text.startswith("Failed to load resource"):
        opened.troubles.append(f"{kind}: {text}")
