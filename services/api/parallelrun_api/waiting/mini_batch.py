"""Conditions that one mini-batch must meet to run. Pure, no I/O."""

from __future__ import annotations

from parallelrun_api.waiting.situation import Situation
from parallelrun_core.answers.waiting import RunCondition, RunConditionState
from parallelrun_core.plurals import counted
from parallelrun_core.store.job_views import Holding


def conditions_of_one(situation: Situation, mini_batch: int, holding: Holding) -> list[RunCondition]:
    """Return the conditions of a mini-batch that is not decided, beyond those of its job."""
    progress = situation.progress
    if mini_batch >= progress.scheduled:
        state: RunConditionState = "blocks" if progress.listing_done else "waits"
        text = f"it has not been found yet: {counted(progress.scheduled, 'mini-batch')} are so far"
        advice = "the job has no such mini-batch" if progress.listing_done else ""
        return [RunCondition(name="listed", state=state, text=text, advice=advice)]
    conditions = [RunCondition(name="listed", state="met", text="it is in the list of mini-batches")]
    if mini_batch >= progress.published:
        before = mini_batch - progress.published
        text = f"it is handed out once some before it are decided: {before:,} come before it beyond those on Redis"
        return [*conditions, RunCondition(name="published", state="waits", text=text)]
    conditions.append(RunCondition(name="published", state="met", text="it may be handed out"))
    if holding.tries or holding.lost:
        conditions.append(_tries(holding))
    return [*conditions, _place(holding)]


def _tries(holding: Holding) -> RunCondition:
    words = [f"{counted(holding.tries, 'try', 'tries')} failed"] if holding.tries else []
    words += [f"{counted(holding.lost, 'delivery', 'deliveries')} lost with a node"] if holding.lost else []
    text = f"{' and '.join(words)}: it runs again without delay, on a worker that has nothing else, as it may kill it"
    return RunCondition(name="retry", state="met", text=text)


def _place(holding: Holding) -> RunCondition:
    if holding.node:
        return RunCondition(name="turn", state="met", text=f"node {holding.node} has it, and runs it next or already")
    if holding.before is None:
        text = "it is between two places: a node has just ended it, or gives it back"
        return RunCondition(name="turn", state="waits", text=text)
    if holding.before:
        text = f"{counted(holding.before, 'mini-batch')} of the job are handed out before it"
        return RunCondition(name="turn", state="waits", text=text)
    return RunCondition(name="turn", state="met", text="it is the next one that a node gets")
