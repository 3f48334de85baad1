"""The upper part of a report: how the job stands and why, its figures, what to change, where its time went."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from parallelrun.progress.markup import Child, Markup, element
from parallelrun.progress.steps import describe_step
from parallelrun.progress.summary import headline, is_clean
from parallelrun.report.charts import per_second, seconds, share
from parallelrun.report.facts import Facts
from parallelrun_core.figures import counted

if TYPE_CHECKING:
    from parallelrun_core.adviser.advice import AdviceFinding

_MOST_TEXT = 8000


def head(facts: Facts) -> Markup:
    """Return which job it is, and how it stands."""
    job = facts.job
    looks = job.state if job.state != "completed" or is_clean(job) else "mixed"
    times = [(word, moment) for word, moment in (("submitted", job.submitted), ("ended", job.ended)) if moment]
    words = [f"{word} {datetime.fromisoformat(moment):%Y-%m-%d %H:%M:%S} UTC" for word, moment in times]
    if facts.figures.workers:
        words.append(f"{counted(facts.figures.workers, 'worker')} on {counted(facts.figures.nodes, 'node')}")
    description = str(job.spec.get("description") or "")
    return element(
        "header",
        element(
            "div", element("h1", job.name or job.id), element("span", job.state, class_=f"badge {looks}"), class_="head"
        ),
        element("p", element("code", job.id), " · ", " · ".join(words), class_="muted small"),
        element("p", description[:_MOST_TEXT]) if description else None,
        element("p", headline(job)) if job.has_ended and not job.failure else None,
    )


def cause(facts: Facts) -> Markup | None:
    failure = facts.job.failure
    if failure is None:
        return None
    samples = ", ".join(f"{each:,}" for each in failure.sample_mini_batches)
    return card(
        "Why it failed",
        element("p", failure.summary, class_="first"),
        element("p", failure.first_cause[:_MOST_TEXT]) if failure.first_cause else None,
        element("pre", failure.traceback.strip("\n")[:_MOST_TEXT]) if failure.traceback else None,
        element("p", "Mini-batches that show it: ", samples, class_="muted small") if samples else None,
        element("p", "Log: ", element("code", failure.log.removeprefix("logs/")), class_="muted small")
        if failure.log
        else None,
        element("p", element("b", "What to do: "), failure.hint) if failure.hint else None,
        kind="cause",
    )


def figures(facts: Facts) -> Markup | None:
    job, key_figures, progress = facts.job, facts.figures, facts.job.progress
    if job.is_pipeline:
        return None
    total = f" of {progress.scheduled:,}" if progress.scheduled > progress.decided else ""
    rows = [
        ("Duration", seconds(key_figures.took_s), False),
        ("Mini-batches", f"{progress.decided:,}{total}", False),
        ("Failed mini-batches", f"{progress.failed:,}", progress.failed > 0),
        ("Items", f"{progress.items_decided:,}", False),
        ("Failed items", f"{progress.items_lost:,}", progress.items_lost > 0),
        ("Rows", f"{progress.rows:,}", False),
        ("Tries that failed", f"{key_figures.failed_tries:,}", False),
        ("Items per second", per_second(job.pace.items_per_s if job.pace else key_figures.items_per_s), False),
        ("Workers busy", share(key_figures.busy_share), False),
        ("Median mini-batch", seconds(key_figures.median_run_s), False),
        ("99 % are faster than", seconds(key_figures.p99_run_s), False),
        ("Longest mini-batch", seconds(key_figures.max_run_s), False),
    ]
    tiles = [
        element(
            "div", element("b", value), element("span", title, class_="muted small"), class_=f"tile{' bad' * is_bad}"
        )
        for title, value, is_bad in rows
        if value
    ]
    return element("section", tiles, class_="card tiles", aria_label="Key figures")


def advice(facts: Facts) -> Markup | None:
    job_advice = facts.advice
    if job_advice is None or not job_advice.findings:
        return None
    return card("What to change", element("ol", map(_finding, job_advice.findings), class_="advice"))


def _finding(each: AdviceFinding) -> Markup:
    saving = ""
    if each.saving_s > 0:
        saving = f"saves {seconds(each.saving_s)} ({share(each.saving_share)})"
    settings = " ".join(f"--set {name}={value}" for name, value in each.change.set.items())
    return element(
        "li",
        element("b", each.title),
        " ",
        element("span", saving, class_="saves") if saving else None,
        element("p", each.change.text),
        element("p", element("code", settings)) if settings else None,
        element("p", "; ".join(each.evidence), class_="muted small"),
    )


def steps(facts: Facts) -> Markup | None:
    if not facts.job.steps:
        return None
    rows = [
        element(
            "tr",
            element("td", step.name),
            element("td", element("span", step.state, class_=f"badge {step.state}")),
            element("td", describe_step(step).removeprefix(step.state).strip(": ,")),
            element("td", element("code", step.job or "")),
        )
        for step in facts.job.steps
    ]
    return card("Steps", table(("Step", "State", "", "Job"), rows), kind="long")


def phases(facts: Facts) -> Markup | None:
    """Return where the time of the job went, and that of its workers."""
    key_figures = facts.figures
    if key_figures.took_s is None:
        return None
    first = key_figures.first_try_s or 0.0
    working = min(facts.timeline.length_s, max(key_figures.took_s - first, 0.0))
    of_job = [
        ("wait", "waiting for a master", key_figures.waited_s or 0.0),
        ("begin", "listing, environment, up to the first mini-batch", first),
        ("work", "mini-batches", working),
        (
            "end",
            "putting the output together",
            max(key_figures.took_s - first - working, 0.0) if facts.job.has_ended else 0.0,
        ),
    ]
    busy = key_figures.run_s + key_figures.load_s
    of_limits = sum(facts.job.progress.waits_s.values())
    alive = busy / key_figures.busy_share if key_figures.busy_share else 0.0
    has_several = (
        facts.job.spec.get("mini_batches_in_flight", 1) != 1
    )  # then their times overlap, and say nothing of it
    idle = 0.0 if has_several else max(alive - busy - key_figures.overhead_s - key_figures.init_s - of_limits, 0.0)
    of_workers = [
        ("run", "run() with a result", max(key_figures.run_s - key_figures.wasted_s, 0.0)),
        ("lost", "tries that failed", min(key_figures.wasted_s, key_figures.run_s)),
        ("load", "loading", key_figures.load_s),
        ("init", "init()", key_figures.init_s),
        ("wait", "waiting for limits", of_limits),
        ("other", "around run()", key_figures.overhead_s),
        ("idle", "idle", idle),
    ]
    return card(
        "Where the time went",
        element("h3", "The job"),
        _stack(of_job),
        [element("h3", "Its mini-batches" if has_several else "Its workers, all together"), _stack(of_workers)]
        if busy
        else None,
    )


def _stack(parts: list[tuple[str, str, float]]) -> Markup:
    total = sum(value for *_, value in parts) or 1.0
    positive = [(kind, words, value) for kind, words, value in parts if value > 0]
    return element(
        "div",
        element(
            "div",
            [element("span", class_=kind, style=f"flex:{value / total:.4f}") for kind, _, value in positive],
            class_="stack",
        ),
        element("ul", [_entry(kind, words, value, total) for kind, words, value in positive], class_="legend"),
    )


def _entry(kind: str, words: str, value: float, total: float) -> Markup:
    return element(
        "li", element("i", class_=f"key {kind}"), f"{words} ", element("b", seconds(value)), f" {share(value / total)}"
    )


def card(title: str, *children: Child, kind: str = "") -> Markup:
    return element("section", element("h2", title), *children, class_=f"card {kind}".strip())


def table(titles: tuple[str, ...], rows: list[Markup]) -> Markup:
    """A table that scrolls by itself where there is no room."""
    return element(
        "div",
        element(
            "table",
            element("thead", element("tr", [element("th", title, scope="col") for title in titles])),
            element("tbody", rows),
        ),
        class_="scroll",
    )
