"""A job as a few lines of HTML with a bar, for notebooks: light or dark as the notebook is, without scripts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from parallelrun.progress.markup import Child, Markup, element
from parallelrun.progress.steps import describe_step, most_urgent
from parallelrun.progress.summary import failure_lines, headline
from parallelrun.progress.text import clean, counts, describe, mini_batches, pace, waiting_words
from parallelrun_core.answers.jobs import Job, PipelineStep
from parallelrun_core.wire.progress import Progress

_MOST_STEPS: Final = 20
_MOST_NOTES: Final = 10
_COLORS: Final = {"completed": "#2c9c6c", "failed": "#d8431c", "canceled": "#d8431c"}
_RUNNING: Final = "#4a8fec"
_BOX: Final = "font:13px/1.5 system-ui,sans-serif;border:1px solid rgba(128,128,128,.35);border-radius:8px;"
_PADDING: Final = "padding:10px 14px;max-width:640px;margin:4px 0"
_BED: Final = "display:flex;height:8px;border-radius:4px;overflow:hidden;background:rgba(128,128,128,.25);margin:6px 0"
_SMALL: Final = "opacity:.75;font-size:12px"


def drawn(
    title: str,
    state: str,
    progress: Progress,
    *,
    items_per_s: float | None = None,
    left_s: float | None = None,
    steps: Sequence[PipelineStep] = (),
    notes: Sequence[str] = (),
) -> Markup:
    """Return how a job stands."""
    color = _COLORS.get(state, _RUNNING)
    return element(
        "div",
        element("b", clean(title)),
        "  ",
        element("span", state, style=f"color:{color};font-weight:600"),
        _bar(progress, color) if not steps and progress.scheduled else None,
        element("div", _words(state, progress, items_per_s, left_s), style=_SMALL) if not steps else None,
        _listed(steps),
        [element("div", clean(note), style=_SMALL) for note in notes[-_MOST_NOTES:]],
        style=_BOX + _PADDING,
    )


def drawn_job(job: Job, *, items_per_s: float | None = None, left_s: float | None = None) -> Markup:
    """Draw a job as a server has told it, with why it failed."""
    notes = [headline(job)] if job.has_ended else []
    notes += [words] if (words := waiting_words(job.waiting)) else []
    if job.failure:
        notes += failure_lines(job.failure, log_hint=str, traceback=False)
    title = f"{job.name} ({job.id})" if job.name else job.id
    return drawn(title, job.state, job.progress, items_per_s=items_per_s, left_s=left_s, steps=job.steps, notes=notes)


def bundle_of(job: Job) -> dict[str, str]:
    """Both, as front ends choose from."""
    return {"text/html": str(drawn_job(job)), "text/plain": text_of(job)}


def text_of(job: Job) -> str:
    """Return the text that is shown where there is no HTML."""
    title = f"{clean(job.name)} ({job.id})" if job.name else job.id
    if job.has_ended:
        return f"{title}: {headline(job)}"
    words = waiting_words(job.waiting)
    return f"{title}: {words or describe(job.state, job.progress, items_per_s=None, left_s=None)}"


def _bar(progress: Progress, color: str) -> Markup:
    total = max(progress.scheduled, progress.decided, 1)
    parts: list[Child] = [
        element("div", style=f"width:{100 * count / total:.2f}%;background:{shade}")
        for count, shade in ((progress.done, color), (progress.failed, _COLORS["failed"]))
        if count
    ]
    words = f"{mini_batches(progress)} mini-batches"
    return element("div", parts, style=_BED, title=words, role="img", aria_label=words)


def _words(state: str, progress: Progress, items_per_s: float | None, left_s: float | None) -> str:
    if state == "finalizing" or not progress.scheduled:
        return describe(state, progress, items_per_s=None, left_s=None)
    pace_words = pace(progress, items_per_s=items_per_s, left_s=left_s)
    return " · ".join([f"{mini_batches(progress)} mini-batches", *counts(progress), *pace_words])


def _listed(steps: Sequence[PipelineStep]) -> list[Markup]:
    listed_steps, others = most_urgent(steps, _MOST_STEPS)
    lines = [
        element("div", element("b", clean(step.name)), f": {describe_step(step)}", style=_SMALL)
        for step in listed_steps
    ]
    return lines + ([element("div", others, style=_SMALL)] if others else [])
