"""The last of these tests, since nothing works afterwards: jobs that have ended are shown while all else is dead."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.studio.chromium import tab
from tests.studio.cluster import HOSTILE, Studio

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(300)]

SAID: dict[str, str | re.Pattern[str]] = {
    "": "60 items gave 60 rows",
    "mini-batches": "A square is one mini-batch",
    "timeline": re.compile("node000/process00[01]"),  # one of two may have done it all
    "resources": re.compile("^CPU$|only one record"),  # a job this short may be over before it is measured twice
    "logs": "has completed",
    "outputs": "The file with all rows",
    "parameters": "mini_batch_size",
    "events": "Completed",
}


def test_a_job_that_has_ended_is_shown_while_redis_and_all_other_services_are_dead(
    browser: Browser, shown: Studio
) -> None:
    for name in ("master", "concatenator", "node000"):
        shown.cluster.kill(name)
    shown.cluster.redis_server.kill()
    with tab(browser, shown.url, cookies=[shown.cookie()]) as opened:
        for part, words in SAID.items():
            opened.open(f"/jobs/{shown.jobs['good']}/{part}")
            opened.page.get_by_text(words).first.wait_for()
        opened.open(f"/jobs/{shown.jobs['broken']}")
        opened.page.get_by_text(f"{HOSTILE} can't be read").first.wait_for()
        assert opened.troubles == []
