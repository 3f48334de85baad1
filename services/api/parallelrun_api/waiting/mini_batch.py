"""Conditions that one mini-batch must meet to run. Pure, no I/O."""

from __future__ import annotations

from parallelrun_api.waiting.situation import Situation
from parallelrun_core.answers.waiting import RunCondition, RunConditionState
from parallelrun_core.figures import counted
from parallelrun_core.spec.retry_policy import retry_text
from parallelrun_core.store.job_views import Holding


def conditions_of_one(situation: Situation, mini_batch: int, holding: Holding) -> list[RunCondition]:
    """Return the conditions of a mini-batch that is not decided, beyond those of its job."""
    progress = situation.progress
    if mini_batch >= progress.scheduled:
        state: RunConditionState = "blocks" if progress.listing_done else "waits"
        text = f"it has not been found yet: so far there are {progress.scheduled:,}"
        advice = "the job has no such mini-batch" if progress.listing_done else ""
        return [RunCondition(name="listed", state=state, text=text, advice=advice)]
    conditions = [RunCondition(name="listed", state="met", text="it is in the list of mini-batches")]
    if mini_batch >= progress.published:
        before = mini_batch - progress.published
        text = f"it waits for {counted(before, 'mini-batch')} that Redis gets before it, as others are decided"
        return [*conditions, RunCondition(name="published", state="waits", text=text)]
    conditions.append(RunCondition(name="published", state="met", text="it may be handed out"))
    if holding.tries or holding.lost:
        conditions.append(_retry(holding))
    return conditions if holding.pause_s else [*conditions, _place(holding)]


def _retry(holding: Holding) -> RunCondition:
    text = retry_text(holding.tries, holding.lost, holding.pause_s)
    if not holding.pause_s:
        return RunCondition(name="retry", state="met", text=text)
    return RunCondition(name="retry", state="waits", text=text, left_s=holding.pause_s)


def _place(holding: Holding) -> RunCondition:
    if holding.node:
        return RunCondition(name="turn", state="met", text=f"node {holding.node} has it, and runs it next or already")
    if holding.before is None:
        text = "it is between two places: a node has just ended it, or gives it back"
        return RunCondition(name="turn", state="waits", text=text)
    if holding.before:
        text = f"it is handed out after {counted(holding.before, 'mini-batch')} of the job"
        return RunCondition(name="turn", state="waits", text=text)
    return RunCondition(name="turn", state="met", text="it is the next one that a node gets")
