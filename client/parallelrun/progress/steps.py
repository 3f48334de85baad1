"""The state of the steps of a pipeline, in words. Pure functions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from parallelrun.progress.text import clean, mini_batches, took
from parallelrun_core.figures import counted

if TYPE_CHECKING:
    from parallelrun_core.answers.jobs import PipelineStep

_WHY_CHARACTERS: Final = 300
_URGENT: Final = ("failed", "running", "canceled", "skipped", "waiting", "completed")
"""What is shown first when not all steps can be."""
_MOST_NAMES: Final = 3


def describe_step(step: PipelineStep) -> str:
    """Return how a step stands, without numbers that change all the time."""
    match step.state:
        case "waiting":
            return f"waiting for {listed(step.needs)}" if step.needs else "waiting"
        case "completed" if step.reused:
            return f"completed: reuses the outputs of {step.job}"
        case "completed":
            return f"completed{took(step)}{_counted(step)}"
        case "running":
            return f"running, {step.job}"
    why = f": {clean(step.why, most=_WHY_CHARACTERS)}" if step.why else ""
    return f"{step.state}{took(step)}{why}"


def describe_running(step: PipelineStep) -> str:
    """Return how far a step is."""
    progress = step.progress
    if step.turns:
        return f"{step.name} {_turns(step)}"
    if step.type != "parallel" or progress is None or not progress.scheduled:
        return step.name
    failed = f", {progress.failed:,} failed" if progress.failed else ""
    return f"{step.name} {mini_batches(progress)} mini-batches{failed}"


def describe_pipeline(state: str, steps: Sequence[PipelineStep]) -> str:
    """Return how a pipeline stands, in one line."""
    counts = Counter(step.state for step in steps)
    words = [f"{counts['completed']:,}/{len(steps):,} steps"]
    words += [f"{counts[each]:,} {each}" for each in ("failed", "canceled", "skipped") if counts[each]]
    running = [describe_running(step) for step in steps if step.state == "running"]
    return f"{state}: {', '.join(words)}" + (f"; running: {listed(running)}" if running else "")


def most_urgent(steps: Sequence[PipelineStep], most: int) -> tuple[list[PipelineStep], str]:
    """Split steps into those that are worth a line each, in their order, and the others in words."""
    if len(steps) <= most:
        return [*steps], ""
    ranked = sorted(range(len(steps)), key=lambda index: _URGENT.index(steps[index].state))
    chosen = {*ranked[: most - 1]}
    other_states = Counter(step.state for index, step in enumerate(steps) if index not in chosen)
    others = ", ".join(f"{count:,} {state}" for state, count in other_states.items())
    return [step for index, step in enumerate(steps) if index in chosen], f"and {others}"


def listed(names: Sequence[str]) -> str:
    """The first names, and how many more there are."""
    more = f" and {len(names) - _MOST_NAMES:,} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(names[:_MOST_NAMES]) + more


def _turns(step: PipelineStep) -> str:
    """Return how far a loop is, or how far it came."""
    if step.loop == "parallel_for" and step.turns != step.most_turns:
        return f"{step.turns:,}/{step.most_turns:,} turns"
    return counted(step.turns or 0, "turn")


def _counted(step: PipelineStep) -> str:
    progress = step.progress
    if step.turns:
        return f": {_turns(step)}"
    if step.type != "parallel" or progress is None:
        return ""
    failed = f", BUT {progress.failed:,} failed" if progress.failed else ""
    return f": {mini_batches(progress)} mini-batches, {counted(progress.rows, 'row')}{failed}"
