"""A pipeline: boxes by state, whole reasons, the failed step's log in one click, and its steps in time."""

from __future__ import annotations

import re
from typing import Any, Final

import pytest

from parallelrun_core.wire.states import JobState
from tests.studio.chromium import NARROW, Tab
from tests.studio.cluster import GOOD, Studio

REASON: Final = "/models/resnet-50/weights.bin is missing on this node, and no other node of this compute has had it"
MESSAGE: Final = f"the model is not here: {REASON}"

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def fails(shown: Studio) -> str:
    command: dict[str, Any] = {"type": "command", "job": {"command": "echo hello"}, "script": ""}
    score: dict[str, Any] = {
        "job": {"inputs": {"data": {"path": str(shown.cluster.files(4))}}, "mini_batch_size": 1},
        "script": f"def init(): raise ValueError({MESSAGE!r})\ndef run(mini_batch): return mini_batch",
    }
    steps = {
        "prepare": command,
        "score": {**score, "after": ["prepare"]},
        "report": {
            "type": "command",
            "job": {"command": "echo hello", "outputs": {"rows": {"type": "uri_folder"}}},
            "script": "",
            "after": ["score"],
            "outputs_to": {"rows": "rows"},
        },
    }
    outputs = {"rows": {"type": "uri_folder", "of": {"step": "report", "output": "rows"}}}
    job = shown.cluster.submit_pipeline(GOOD, steps, name="fails", outputs=outputs)
    shown.cluster.result(job)
    return job


def test_steps_are_coloured_by_state_and_say_the_whole_reason(opened: Tab, fails: str) -> None:
    page = opened.page
    opened.open(f"/jobs/{fails}")
    page.locator(".step.failed", has_text="score").wait_for()
    colors = {
        state: page.locator(f".step.{state}").first.evaluate("each => getComputedStyle(each).backgroundColor")
        for state in ("done", "failed", "stopped")
    }
    assert len(set(colors.values())) == 3, colors
    assert page.locator(".plane > svg > path[marker-end]").count() == 2
    page.locator(".step.failed", has_text=REASON).wait_for()
    assert "INIT_EXCEPTION" not in page.locator(".page").inner_text()
    is_cut = "(each) => each.scrollHeight > each.clientHeight + 1"
    texts = page.locator(".step, .step .sub").evaluate_all(f"all => all.filter({is_cut}).map((each) => each.innerText)")
    assert texts == []
    page.locator(".step.failed").get_by_role("link", name="Open its log").click()
    page.locator(".log-lines", has_text="the model is not here").wait_for()
    page.go_back()
    page.locator(".sentence.failed").get_by_role("link", name="Open the log of score").click()
    page.locator(".log-lines", has_text="the model is not here").wait_for()
    page.locator(".log-lines", has_text="Pipeline").wait_for(state="detached")


@pytest.mark.parametrize(
    "tab_name, heading", [("mini-batches", "Map"), ("advice", "What if"), ("resources", "Nodes side by side")]
)
def test_tabs_of_other_jobs_show_a_step_of_a_pipeline(opened: Tab, shown: Studio, tab_name: str, heading: str) -> None:
    page = opened.page
    opened.open(f"/jobs/{shown.jobs['pipeline']}/{tab_name}")
    page.get_by_role("group", name="Step").get_by_role("button", name="score").wait_for()
    page.locator(".card h2", has_text=heading).wait_for()
    assert opened.violations() == []


def test_the_head_of_a_job_takes_three_lines_on_a_phone(opened: Tab, fails: str) -> None:
    opened.resize(*NARROW)
    opened.open(f"/jobs/{fails}")
    heights = [opened.page.locator(f".job-head > {part}").bounding_box() for part in (".heading", ".sub")]
    # Its name and state; what can be done with it; its id.
    assert sum(each["height"] for each in heights if each is not None) < 100, heights
    assert opened.overflow() <= 0


def test_steps_of_a_pipeline_stand_in_time(opened: Tab, shown: Studio, fails: str) -> None:
    page = opened.page
    opened.open(f"/jobs/{fails}/timeline")
    rows = page.locator(".gantt li")
    rows.nth(2).wait_for()
    assert rows.count() == 3
    bars = [page.locator(f".gantt .lane .{state}").first.bounding_box() for state in ("done", "failed")]
    first, second = bars
    assert first is not None
    assert second is not None
    assert second["x"] >= first["x"]
    rows.nth(1).get_by_role("link", name="Open its log").wait_for()
    assert re.search(r"\d\d:\d\d:\d\d", rows.nth(0).inner_text())
    assert opened.violations() == []
    opened.resize(*NARROW)
    assert opened.overflow() <= 0


def test_a_loop_shows_its_turns_and_leads_to_them(opened: Tab, shown: Studio) -> None:
    body = {
        "type": "command",
        "job": {"command": "echo ${{inputs.number}}"},
        "inputs_from": {"number": {"input": "number", "literal": "string"}},
    }
    loop = {"type": "parallel_for", "items": {name: {"number": {"value": name}} for name in ("first", "second")}}
    each = {"type": "pipeline", "job": {"steps": {"body": body}, "loop": loop}}
    job = shown.cluster.submit_pipeline("", {"each": each}, name="turns")
    assert shown.cluster.result(job).state is JobState.COMPLETED
    page = opened.page
    opened.open(f"/jobs/{job}")
    step = page.locator(".step.done", has_text="each")
    step.get_by_text("2 turns").wait_for()
    step.get_by_role("link", name="each").click()
    for name in ("first", "second"):
        page.locator(".step.done", has_text=name).wait_for()
    assert page.locator(".step").count() == 2
    assert opened.violations() == []


def test_outputs_of_a_pipeline_are_downloaded_from_its_head(opened: Tab, shown: Studio) -> None:
    page = opened.page
    opened.open(f"/jobs/{shown.jobs['pipeline']}")
    page.get_by_role("link", name="Download …").click()
    page.get_by_role("link", name=re.compile("^Download .*")).first.wait_for()


def test_an_output_that_a_failed_pipeline_has_not_made_says_why(opened: Tab, fails: str) -> None:
    opened.open(f"/jobs/{fails}")
    output = opened.page.locator(".card", has_text="Outputs of the pipeline").locator("dl > div", has_text="rows")
    text = output.inner_text()
    assert "not made since step report was skipped" in text, text
    assert "yet" not in text


def test_a_pipeline_is_run_again_with_changes_and_the_code_that_it_had(opened: Tab, shown: Studio) -> None:
    page = opened.page
    opened.open(f"/jobs/{shown.jobs['pipeline']}")
    page.get_by_role("link", name="Run again …").click()
    page.get_by_text("The server would accept this pipeline job").wait_for()
    page.get_by_text("None: it would be the same job once more.").wait_for()
    assert page.get_by_label("Mini-batch size").count() == 0, "it has none of its own"
    page.get_by_label("Steps at once").fill("1")
    page.locator(".diff .new", has_text="max_concurrency: 1").wait_for()
    page.get_by_text("The server would accept this pipeline job").wait_for()
    assert opened.violations() == []
    page.get_by_role("button", name="Submit").click()
    page.get_by_role("heading", name="nightly").wait_for()
    opened.until("id => !location.pathname.endsWith(id)", shown.jobs["pipeline"])
    job = page.url.rpartition("/")[2]
    shown.cluster.result(job)
    page.locator(".figures", has_text="4 of 4").wait_for()
