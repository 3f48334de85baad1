"""A report as one HTML file that needs nothing else, least of all a script."""

from __future__ import annotations

from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from parallelrun.progress.markup import Markup, element, raw
from parallelrun.report.facts import Facts
from parallelrun.report.overview import advice, cause, figures, head, phases, steps
from parallelrun.report.particulars import errors, heat_map, settings, slowest, throughput, timeline, usage

_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
"""Nothing is fetched and no script runs, whatever is in the file."""


def page(facts: Facts) -> str:
    job = facts.job
    title = f"{job.name or job.id}: {job.state}"
    sections = (
        head, cause, figures, advice, steps, phases, throughput, heat_map, timeline, errors, slowest, usage, settings,
    )  # fmt: skip
    document = element(
        "html",
        element(
            "head",
            element("meta", charset="utf-8"),
            element("meta", http_equiv="Content-Security-Policy", content=_POLICY),
            element("meta", name="viewport", content="width=device-width, initial-scale=1"),
            element("meta", name="color-scheme", content="light dark"),
            element("title", title),
            element("style", raw(Path(__file__).with_name("style.css").read_text(encoding="utf-8"))),
        ),
        element("body", element("main", [section(facts) for section in sections], _foot(facts))),
        lang="en",
    )
    return f"<!doctype html>\n{document}\n"


def _foot(facts: Facts) -> Markup:
    job = facts.job
    state = "" if job.has_ended else " The job had not ended by then."
    return element(
        "footer",
        element(
            "p", f"As known to {facts.server} on {when(facts.created)}.{state} ParallelRun {version('parallelrun')}."
        ),
        element(
            "p",
            element("code", f"parallelrun job show {job.id}"),
            " · ",
            element("code", f"parallelrun job logs {job.id}"),
            " · ",
            element("code", f"parallelrun job open {job.id}"),
        ),
    )


def when(moment: datetime) -> str:
    """`2026-11-23 08:15:09 UTC`."""
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
