"""Jobs in notebooks: a display that is kept up to date, and text where there is no notebook."""

from __future__ import annotations

import io
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from parallelrun.models import Failure, Job, Progress, Step
from parallelrun.progress.plain import PlainDisplay, display_on
from parallelrun.resources.jobs import Jobs

HOSTILE = "<script>alert(1)</script>\x1b[2J"


def job(state: str = "processing", **fields: Any) -> Job:
    progress = Progress(scheduled=10, listing_done=True, done=4, failed=1, items_scheduled=100, items_done=40)
    return Job(**{"id": "job_1", "name": "words", "state": state, "progress": progress, **fields})


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str, dict[str, str]]]:
    """What a notebook shows: how, where, and what. IPython's part in it is what its documentation says."""
    calls: list[tuple[str, str, dict[str, str]]] = []

    def call(name: str) -> Any:
        def tell(data: dict[str, str], *, raw: bool, display_id: str) -> None:
            assert raw
            calls.append((name, display_id, data))

        return tell

    ipython, display = ModuleType("IPython"), ModuleType("IPython.display")
    ipython.get_ipython = lambda: SimpleNamespace(kernel=object())  # type: ignore[attr-defined]
    display.display, display.update_display = call("display"), call("update")  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    return calls


class Answers:
    """A server whose job has another version each time."""

    def __init__(self, *jobs: Job) -> None:
        self._jobs = list(jobs)

    def request(self, *_: Any, **__: Any) -> Any:
        import msgspec

        return msgspec.to_builtins(self._jobs.pop(0) if len(self._jobs) > 1 else self._jobs[0])


ENDED = {"ended": "2026-11-23T08:00:00.000Z", "version": 9}


def test_waiting_in_a_notebook_shows_one_display_that_changes(shown: list[tuple[str, str, dict[str, str]]]) -> None:
    answers = Answers(job(version=1), job(version=2), job("completed", **ENDED))

    Jobs(answers).wait("job_1")  # type: ignore[arg-type]

    assert [how for how, *_ in shown] == ["display", "update"]
    assert len({where for _, where, _ in shown}) == 1
    first, last = (data for *_, data in shown)
    assert "5/10 mini-batches" in first["text/html"]
    assert "completed, but" in last["text/html"]
    assert last["text/plain"].startswith("words (job_1): completed, but")


def test_waiting_elsewhere_shows_nothing_and_needs_no_ipython(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "IPython", None)  # importing it would fail
    assert Jobs(Answers(job("completed", **ENDED))).wait("job_1").state == "completed"  # type: ignore[arg-type]


def test_it_can_be_left_out(shown: list[tuple[str, str, dict[str, str]]]) -> None:
    Jobs(Answers(job("completed", **ENDED))).wait("job_1", progress=False)  # type: ignore[arg-type]
    assert shown == []


def test_a_job_is_drawn_with_its_failure_and_its_words_stay_words() -> None:
    failure = Failure(code="x", summary=HOSTILE, first_cause="ValueError", log="logs/a.txt")
    failed = job("failed", name=HOSTILE, failure=failure, **ENDED)

    bundle = failed._repr_mimebundle_()

    assert bundle["text/html"] == failed._repr_html_()
    assert "ValueError" in bundle["text/html"]
    for text in bundle.values():
        assert "\x1b" not in text
    assert "<script>" not in bundle["text/html"]
    assert "failed: <script>" in bundle["text/plain"]


def test_a_pipeline_is_drawn_with_its_steps() -> None:
    steps = [Step(name="a", state="completed"), Step(name="b", state="failed", why=HOSTILE)]
    html = job("failed", type="pipeline", steps=steps)._repr_html_()
    assert "<b>b</b>" in html
    assert "<script>" not in html


def test_run_shows_its_progress_in_the_notebook(shown: list[tuple[str, str, dict[str, str]]]) -> None:
    with display_on(io.StringIO(), title="words") as display:
        display.update("processing", job().progress)
        display.note("RUN_EXCEPTION: <b>")
        display.steps("processing", [Step(name="a", state="running", job="job_2")])
    assert [how for how, *_ in shown][:2] == ["display", "update"]
    assert "RUN_EXCEPTION: &lt;b&gt;" in shown[-1][2]["text/html"]


def test_a_terminal_with_ipython_is_no_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=SimpleNamespace))
    assert isinstance(display_on(io.StringIO(), title="words"), PlainDisplay)
