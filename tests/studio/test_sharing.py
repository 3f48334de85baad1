"""A job among others: why it doesn't run now, pausing it, and its priority."""

from __future__ import annotations

import pytest

from parallelrun_core.folder.control import read_control
from parallelrun_core.wire.states import JobState
from tests.studio.chromium import Tab
from tests.studio.cluster import Studio

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(300)]


def test_a_job_is_paused_says_why_it_does_not_run_gets_a_priority_and_goes_on(opened: Tab, shown: Studio) -> None:
    job, page = shown.submit_slow(), opened.page
    folder = shown.cluster.folder(job)
    shown.cluster.until(lambda: shown.cluster.registry.status(job).progress.done > 3, "it is at work", 60)
    opened.open(f"/jobs/{job}")
    page.get_by_role("button", name="Pause").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_text(f"parallelrun job pause {job}").wait_for()
    dialog.get_by_role("button", name="Pause", exact=True).click()
    page.get_by_text("Why: it was paused").wait_for()
    page.get_by_text(f"parallelrun job resume {job}").first.wait_for()
    page.get_by_text("It is paused, with").wait_for()
    page.locator(".heading .state", has_text="paused").wait_for()
    page.locator(".status-line").get_by_text("1 paused").wait_for()
    assert page.get_by_text("it ends about").count() == 0, "nobody knows"
    assert read_control(folder).paused
    assert opened.violations() == []

    page.get_by_label("Priority").select_option("high")
    shown.cluster.until(lambda: read_control(folder).priority == "high", "it is high", 60)
    page.get_by_role("button", name="Go on").click()
    dialog.get_by_role("button", name="Go on", exact=True).click()
    page.get_by_role("button", name="Pause").wait_for()
    page.get_by_text("Why: it was paused").wait_for(state="detached")
    assert not read_control(folder).paused
    assert page.get_by_label("Priority").input_value() == "high"
    shown.cluster.registry.move(job, JobState.CANCELED)
    shown.cluster.result(job)
