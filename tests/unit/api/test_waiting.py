"""What is said of a job that waits: which condition it doesn't meet, behind whom, and for how long."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from parallelrun_api.people.person import Person
from parallelrun_api.waiting.conditions import conditions_of, first_unmet
from parallelrun_api.waiting.mini_batch import conditions_of_one
from parallelrun_api.waiting.situation import Neighbour, Situation
from parallelrun_core.answers.waiting import RunCondition
from parallelrun_core.folder.control import Control
from parallelrun_core.store.job_views import Holding
from parallelrun_core.store.nodes import NodeInfo
from parallelrun_core.store.rq.wake import LeadQueue
from parallelrun_core.wire.at_work import NodeWork
from parallelrun_core.wire.progress import Progress
from parallelrun_core.wire.states import JobState, NodeState

NOW = 10_000.0
MINE = "job_mine"
BERT = Person(name="bert", scopes=frozenset({"submit"}))
ONLY_OWN = Person(name="bert", scopes=frozenset({"submit"}), sees_all=False)


def node(name: str = "a", slots: int = 4, *, busy: dict[str, int] | None = None, **fields: Any) -> NodeInfo:
    workers = busy or {}
    fields.setdefault("state", NodeState.READY)
    return NodeInfo(
        node=name, session="", host="h", pid=1, slots=slots, busy=sum(workers.values()), version="0", started=0.0,
        workers=workers, **fields,
    )  # fmt: skip


def neighbour(**fields: Any) -> Neighbour:
    """A job of Anna with four workers, whose mini-batches take 240 s."""
    progress = Progress(
        scheduled=1000, listing_done=True, items_scheduled=1000, done=60, items_done=60, running=4,
        recent_from=NOW - 3600, recent_to=NOW, recent_mini_batches=60, recent_items=60,
    )  # fmt: skip
    plain: dict[str, Any] = {"job_id": "job_annas", "owner": "anna", "workers": 4, "frees_in_s": 0.0}
    return Neighbour(**{**plain, "progress": progress, **fields})


def situation(**fields: Any) -> Situation:
    """A job that could run: a master leads it, it has published ten mini-batches, and a node is free."""
    record: Any = SimpleNamespace(spec=fields.pop("spec", {}), owner="bert", is_pipeline=False, submitted=NOW - 60)
    fields.setdefault("progress", Progress(scheduled=10, published=10, listing_done=True, queued_at=NOW - 60))
    fields.setdefault("nodes", (node(),))
    return Situation(
        **{"now": NOW, "job_id": MINE, "record": record, "state": JobState.PROCESSING, "is_led": True} | fields
    )


def unmet(viewer: Person = BERT, **fields: Any) -> RunCondition:
    condition = first_unmet(conditions_of(situation(**fields), viewer))
    assert condition is not None
    return condition


def test_a_job_that_could_run_meets_all_conditions() -> None:
    quota: dict[str, Any] = {"slot_limits": (None, 1), "owners_workers": {"a": 3}, "nodes": (node(busy={"job_x": 3}),)}
    texts = {each.name: each.text for each in conditions_of(situation(**quota), BERT) if each.state == "met"}
    assert texts["quota"] == "jobs of bert have 3 slots on 1 node"
    assert texts["slots"] == "1 of 4 slots is free"
    conditions = conditions_of(situation(), BERT)
    assert {each.state for each in conditions} == {"met"}
    assert [each.name for each in conditions] == ["master", "disk_floor", "listing", "nodes", "node_state", "slots"]


def test_a_job_behind_another_one_says_whose_it_is_and_how_long_it_takes() -> None:
    full: dict[str, Any] = {"nodes": (node(busy={"job_annas": 4}),), "neighbours": (neighbour(),)}
    condition = unmet(**full)
    assert (condition.name, condition.state) == ("slots", "waits")
    assert condition.text == "waiting behind job job_annas (anna, 4 of 4 slots), about 60 s"
    assert condition.left_s == pytest.approx(60)
    others = unmet(**full | {"neighbours": (neighbour(workers=3), neighbour(job_id="job_c", workers=1))})
    assert "(anna, 3 of 4 slots) and 1 other" in others.text


def test_a_job_behind_workers_that_are_kept_says_why_and_who_can_help() -> None:
    full: dict[str, Any] = {"nodes": (node(busy={"job_annas": 4}),)}
    assert "when a mini-batch there has ended" in unmet(**full | {"neighbours": (neighbour(),)}).advice
    kept = unmet(**full | {"neighbours": (neighbour(frees_in_s=76.0),)})
    assert kept.text.endswith("about 76 s")
    assert "ten times as long as their init() took" in kept.advice
    assert "pause that job" in kept.advice


def test_a_share_counts_jobs_that_have_no_worker_yet() -> None:
    work = {MINE: NodeWork(target=2), "job_new": NodeWork(target=2)}
    conditions = conditions_of(situation(nodes=(node(busy={MINE: 4}, work=work),)), BERT)
    (share,) = [each for each in conditions if each.name == "share"]
    assert share.text == "its share is 2 slots beside 1 other job, and it has 4"


def test_names_of_other_people_are_not_shown_to_those_who_see_only_their_own() -> None:
    full: dict[str, Any] = {"nodes": (node(busy={"job_annas": 4}),), "neighbours": (neighbour(),)}
    text = unmet(ONLY_OWN, **full).text
    assert text == "waiting behind another job (4 of 4 slots), about 60 s"
    own: dict[str, Any] = {
        "nodes": (node(busy={"job_x": 4}),),
        "neighbours": (neighbour(job_id="job_x", owner="bert"),),
    }
    assert "job job_x (bert, 4 of 4 slots)" in unmet(ONLY_OWN, **own).text


def test_an_estimate_knows_the_start_of_a_worker_and_the_mini_batch_that_runs() -> None:
    assert neighbour(frees_in_s=600.0).slot_in_s(NOW) == pytest.approx(600)
    one = neighbour(workers=1)
    one.progress.running, one.progress.longest, one.progress.longest_since = 4, 7, NOW - 200
    assert one.slot_in_s(NOW) == pytest.approx(40)
    one.progress.longest_since = NOW - 500
    assert one.slot_in_s(NOW) == pytest.approx(500), "slower than usual: as long again"
    soon = neighbour(frees_in_s=600.0)
    soon.progress.scheduled = soon.progress.items_scheduled = 61
    assert soon.slot_in_s(NOW) == pytest.approx(60), "it ends before"
    assert neighbour(progress=Progress()).slot_in_s(NOW) is None


@pytest.mark.parametrize("fields, name, state, words, advice", [
    ({"slot_limits": (None, 1), "owners_workers": {"a": 4}, "nodes": (node(busy={"job_x": 4}), node("b"))}, "quota",
     "waits", "jobs of bert have their 1 node, without a free slot", "quota set"),
    ({"nodes": (), "other_nodes": 2}, "nodes", "blocks", "2 nodes of computes", "--set compute=NAME"),
    ({"nodes": (), "spec": {"compute": "gpu"}, "progress": Progress(published=1, nodes_why="no quota")},
     "nodes", "waits", "compute 'gpu' has no node yet: no quota", "compute show gpu"),
    ({"nodes": (node(state=NodeState.DISK_FULL),)}, "node_state", "blocks", "the disk of node a is full", "room"),
    ({"nodes": (node(state=NodeState.DRAINING),)}, "node_state", "blocks", "node a: asked to end", "parallelrun-agent"),
    ({"nodes": (node("a"),), "chosen": frozenset({"b"})}, "chosen_nodes", "waits", "no node has been chosen", ""),
    ({"nodes": (node(work={MINE: NodeWork(preparing="environment")}),)}, "preparation", "waits",
     "its environment is built on node a", "job logs"),
    ({"nodes": (node(work={MINE: NodeWork(lacks_memory=True, target=1)}),)}, "memory", "waits", "no memory", ""),
    ({"is_led": False, "state": JobState.QUEUED, "nodes": ()}, "master", "blocks", "no master runs", "start one"),
    ({"is_led": False, "state": JobState.QUEUED, "lead_queue": LeadQueue(8, 8, 3)}, "master", "waits",
     "8 of 8 places for leaders are taken, and 3 jobs are before it", "--leaders"),
    ({"floor_problem": "the volume is full"}, "disk_floor", "blocks", "the volume is full", "admin usage"),
    ({"progress": Progress(bytes_shuffled=1, bytes_to_shuffle=4)}, "listing", "waits", "25 % done", ""),
    ({"progress": Progress()}, "listing", "waits", "listed and cut", ""),
    ({"missing_limits": ("a", "b")}, "rate_limits", "blocks", "2 rate limits not defined: a, b", "limit create"),
    ({"slowed_limits": {"openai": 30.0}}, "rate_limits", "waits", "takes no calls for 30 s", ""),
])  # fmt: skip
def test_each_condition_that_is_not_met_is_said_with_what_to_do(
    fields: dict[str, Any], name: str, state: str, words: str, advice: str
) -> None:
    condition = unmet(**fields)
    assert (condition.name, condition.state) == (name, state)
    assert words in condition.text
    assert advice in condition.advice
    assert bool(advice) == bool(condition.advice)


@pytest.mark.parametrize("waits_s, words", [
    ({"openai": 83.0}, "its rate limits let calls through, one after another: it waits for openai 83 %: more nodes"),
    ({}, "its rate limits let calls through"),
])  # fmt: skip
def test_a_job_that_waits_for_permits_says_for_which_and_how_long(waits_s: dict[str, float], words: str) -> None:
    progress = Progress(scheduled=9, published=9, listing_done=True, waits_s=waits_s, waits_of_s=100.0)
    job = situation(spec={"rate_limits": ["openai"]}, progress=progress, limit_shares={"openai": 0.15})
    conditions = conditions_of(job, BERT)
    [limits] = [each for each in conditions if each.name == "rate_limits"]
    assert limits.text.startswith(words)
    assert limits.text.endswith("services that have refused calls get a part of their rates: openai 15%")
    assert limits.state == "met", "calls go through, as fast as they may"


def test_an_init_that_takes_long_is_shown_with_its_limit() -> None:
    progress = Progress(scheduled=9, published=9, workers=2, init_since=NOW - 300, init_limit_s=210.0)
    condition = unmet(nodes=(node(busy={MINE: 2}),), progress=progress)
    assert condition.name == "init"
    assert condition.text == "init() has run for 5 min of at most 4 min in 2 workers"
    progress.init_limit_s = 1830.0  # more than the job has until its first mini-batch runs
    sooner = unmet(spec={"first_task_creation_timeout": 600}, nodes=(node(busy={MINE: 2}),), progress=progress)
    assert sooner.text == "init() has run for 5 min of at most 10 min in 2 workers"
    assert f"job stacks {MINE}" in condition.advice


@pytest.mark.parametrize("mini_batch, holding, name, words", [
    (10, Holding(None, "", 0, 0), "listed", "has not been found yet"),
    (8, Holding(None, "", 0, 0), "published", "waits for 3 mini-batches"),
    (4, Holding(2, "", 0, 0), "turn", "after 2 mini-batches of the job"),
    (4, Holding(None, "", 0, 0), "turn", "between two places"),
    (4, Holding(None, "", 1, 0, pause_s=29.6), "retry", "1 try failed: it runs again in 30 s at the earliest"),
])  # fmt: skip
def test_a_mini_batch_says_what_it_waits_for(mini_batch: int, holding: Holding, name: str, words: str) -> None:
    waits = situation(progress=Progress(scheduled=10, published=5, listing_done=False))
    condition = first_unmet(conditions_of_one(waits, mini_batch, holding))
    assert condition is not None
    assert condition.name == name
    assert words in condition.text
    again = conditions_of_one(waits, mini_batch, Holding(0, "", 2, 1))
    met = {each.name: each.text for each in again if each.state == "met"}
    assert "retry" not in met or "2 tries failed and 1 delivery lost with a node: it runs again without" in met["retry"]


def test_a_pause_by_an_admin_needs_one_and_only_then() -> None:
    by_admin = Control(paused=True, paused_by="root", paused_by_admin=True)
    admin = Person(name="root", scopes=frozenset({"admin", "submit"}))
    assert unmet(control=by_admin).needs_admin
    assert not unmet(admin, control=by_admin).needs_admin
    assert not unmet(control=Control(paused=True, paused_by="bert")).needs_admin
