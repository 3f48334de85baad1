"""Conditions that a job must meet to run, in the order in which they must be met. Pure, no I/O.

Each check returns its condition, or None where the job doesn't need it or nothing can be said. Jobs of other people are
named only to those who may see them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from parallelrun_api.people.person import Person
from parallelrun_api.waiting.situation import Neighbour, Situation
from parallelrun_core.answers.waiting import RunCondition
from parallelrun_core.figures import about, counted
from parallelrun_core.wire.states import JobState, NodeState

_PREPARING: Final = {
    "code": "its code is checked",
    "environment": "its environment is built",
    "inputs": "its inputs are brought",
}
"""What nodes do before the workers of a job start, in words."""
_WORTH_TELLING_S: Final = 2.0
"""Workers that are kept for longer are a reason to name."""
_START_NODE: Final = (
    "start one on a machine that sees the cluster's folder: `parallelrun-agent` (docs/second-machine.md)"
)

Check = Callable[[Situation, Person], RunCondition | None]


def conditions_of(situation: Situation, viewer: Person) -> list[RunCondition]:
    """Return all conditions of a job that can be checked now, for the person who asks."""
    return [condition for check in _CHECKS if (condition := check(situation, viewer)) is not None]


def first_unmet(conditions: list[RunCondition]) -> RunCondition | None:
    """Return the condition that keeps a job from running; None: nothing does."""
    return next((each for each in conditions if each.state != "met"), None)


def _paused(situation: Situation, viewer: Person) -> RunCondition | None:
    """Nobody has paused the job."""
    control = situation.control
    if not control.paused:
        return None
    by = f"by {control.paused_by}" if control.paused_by else "by whoever runs this server"
    who = f" {by}" if viewer.may_see(control.paused_by) else ""
    if control.paused_by_admin and not viewer.is_admin:
        text, advice = f"it was paused{who}, as an admin", "ask an admin of this cluster to resume it"
        return RunCondition(name="paused", state="blocks", text=text, advice=advice, needs_admin=True)
    return _blocks("paused", f"it was paused{who}", f"`parallelrun job resume {situation.job_id}` lets it go on")


def _master(situation: Situation, _: Person) -> RunCondition | None:
    """A master leads the job."""
    if situation.is_led:
        return _met("master", "a master leads it")
    queue = situation.lead_queue
    if not queue.masters:
        return _blocks("master", "no master runs", "start one: `parallelrun-master`; see docs/operating.md")
    if queue.busy >= queue.masters and queue.before is not None:
        text = f"waiting for a master: {queue.masters:,} of {queue.masters:,} places for leaders are taken"
        text += f", and {counted(queue.before, 'job')} are before it" if queue.before > 1 else ""
        advice = "it begins when another job has ended; `parallelrun-master --leaders` gives more places"
        return _waits("master", text, advice)
    return _waits("master", "waiting for a master to take it, which takes a moment")


def _disk_floor(situation: Situation, _: Person) -> RunCondition | None:
    """The volume of the cluster has room."""
    if not situation.floor_problem:
        return _met("disk_floor", "the volume of the cluster has room")
    advice = "remove what is not needed: `parallelrun admin usage` says what takes the room"
    return _blocks("disk_floor", situation.floor_problem, advice)


def _listing(situation: Situation, _: Person) -> RunCondition | None:
    """Some mini-batch is there to be run."""
    progress = situation.progress
    if not _is_processing(situation):
        return None
    if progress.published > progress.decided:
        return _met("listing", f"{counted(progress.scheduled, 'mini-batch')} found so far")
    if progress.bytes_to_shuffle and progress.bytes_shuffled < progress.bytes_to_shuffle:
        share = 100 * progress.bytes_shuffled / progress.bytes_to_shuffle
        return _waits("listing", f"its rows are grouped by their keys before they are cut: {share:.0f} % done")
    if not progress.listing_done:
        return _waits("listing", "its inputs are listed and cut into mini-batches")
    return _met("listing", "all of its mini-batches are decided")


def _nodes(situation: Situation, _: Person) -> RunCondition | None:
    """A node of the kind that the job needs is alive."""
    if not _is_processing(situation):
        return None
    if situation.nodes:
        return _met("nodes", f"{counted(len(situation.nodes), 'node')} of its kind")
    compute = str(situation.record.spec.get("compute") or "")
    progress = situation.progress
    if compute:
        why = f": {progress.nodes_why}" if progress.nodes_why else ""
        advice = f"`parallelrun compute show {compute}` says how it stands"
        return _waits("nodes", f"compute {compute!r} has no node yet{why}", advice)
    if situation.other_nodes:
        text = (
            f"no node is there for jobs without a compute, though {counted(situation.other_nodes, 'node')} of computes"
        )
        return _blocks("nodes", text, "name a compute with `--set compute=NAME`, or start a node of none")
    return _blocks("nodes", "no node is there", _START_NODE)


def _chosen_nodes(situation: Situation, _: Person) -> RunCondition | None:
    """A node that was chosen for a job with `instance_count` takes work."""
    if situation.chosen is None or not situation.nodes:
        return None
    if any(info.node in situation.chosen for info in situation.nodes):
        return _met("chosen_nodes", f"{counted(len(situation.chosen), 'node')} chosen for it (instance_count)")
    return _waits("chosen_nodes", "no node has been chosen for it yet (instance_count)")


def _node_state(situation: Situation, _: Person) -> RunCondition | None:
    """Some node takes work."""
    if not situation.nodes:
        return None
    if situation.usable:
        return _met("node_state", f"{counted(len(situation.usable), 'node')} can take work of it")
    full = [info.node for info in situation.nodes if info.state is NodeState.DISK_FULL]
    if full:
        return _blocks("node_state", f"the disk of {_named(full)} is full", "make room there: the job then goes on")
    draining = [info.node for info in situation.nodes if info.state is NodeState.DRAINING]
    if len(draining) == len(situation.nodes):
        return _blocks("node_state", f"nothing more begins on {_named(draining)}: asked to end", _START_NODE)
    return None  # other nodes were chosen


def _preparation(situation: Situation, _: Person) -> RunCondition | None:
    """Code, environment and inputs are on some node."""
    needs = {
        info.node: work.preparing
        for info in situation.usable
        if (work := info.work_for(situation.job_id)) is not None and work.preparing
    }
    joined = sum(situation.job_id in info.work for info in situation.usable)
    if not joined:
        return None
    if len(needs) < joined:
        return _met("preparation", "its code, environment and inputs are there")
    preparation = _PREPARING.get(next(iter(needs.values())), "what its workers need is brought")
    advice = f"`parallelrun job logs {situation.job_id}` has the log of the node"
    return _waits("preparation", f"{preparation} on {_named(list(needs))}", advice)


def _quota(situation: Situation, _: Person) -> RunCondition | None:
    """The quota of the owner leaves a slot for the job."""
    slots, nodes = situation.slot_limits
    if slots is None and nodes is None:
        return None
    owners_workers = situation.owners_workers
    owner, workers = situation.record.owner, sum(owners_workers.values())
    free = any(info.busy < info.slots for info in situation.usable if info.node in owners_workers)
    if slots is not None and workers >= slots:
        text = f"jobs of {owner} have {workers:,} of the {counted(slots, 'slot')} of their quota"
    elif nodes is not None and len(owners_workers) >= nodes and not free:
        text = f"jobs of {owner} have their {counted(nodes, 'node')}, without a free slot for this one"
    else:
        text = ""
    if text and not situation.own_workers:
        return _waits("quota", text, "an admin of this cluster can give more: `parallelrun quota set`")
    has = f"{counted(workers, 'slot')} on {counted(len(owners_workers), 'node')}"
    return _met("quota", f"jobs of {owner} have {has}")


def _slots(situation: Situation, viewer: Person) -> RunCondition | None:
    """A slot is free, or the job has some."""
    usable = situation.usable
    if not usable:
        return None
    slots = sum(info.slots for info in usable)
    job_workers = sum(info.workers.get(situation.job_id, 0) for info in usable)
    free = sum(max(0, info.slots - info.busy) for info in usable)
    if job_workers:
        return _met("slots", f"it has {job_workers:,} of {counted(slots, 'slot')}")
    if free:
        return _met("slots", f"{free:,} of {counted(slots, 'slot')} {'is' if free == 1 else 'are'} free")
    left_s = situation.slot_in_s
    soon = f", about {about(left_s)}" if left_s is not None else ""
    text = f"waiting behind {_behind(situation.neighbours, viewer, slots)}{soon}"
    return RunCondition(name="slots", state="waits", text=text, advice=_how_a_slot_comes(situation), left_s=left_s)


def _how_a_slot_comes(situation: Situation) -> str:
    """Return when a slot is given to a job that has none, and what makes it sooner."""
    if situation.neighbours and min(each.frees_in_s for each in situation.neighbours) > _WORTH_TELLING_S:
        return (
            "workers there are kept until they have worked ten times as long as their init() took; an admin, or the "
            "owner, can pause that job"
        )
    return "it gets its share when a mini-batch there has ended; an admin can raise its priority"


def _behind(neighbours: tuple[Neighbour, ...], viewer: Person, slots: int) -> str:
    """Return the job that holds the most slots, in words that name it only to those who may see it."""
    if not neighbours:
        return f"other jobs ({slots:,} of {counted(slots, 'slot')})"
    first, others = neighbours[0], len(neighbours) - 1
    slots_held = f"{first.workers:,} of {counted(slots, 'slot')}"
    if viewer.may_see(first.owner):
        owner = f"{first.owner}, " if first.owner else ""
        name = f"job {first.job_id} ({owner}{slots_held})"
    else:
        name = f"another job ({slots_held})"
    return name + (f" and {counted(others, 'other')}" if others else "")


def _share(situation: Situation, _: Person) -> RunCondition | None:
    """The job has the slots that are its share beside other jobs."""
    works = [work for info in situation.usable if (work := info.work_for(situation.job_id)) and work.target >= 0]
    if not works:
        return None
    target, workers = sum(work.target for work in works), situation.own_workers
    others = {job_id for info in situation.usable for job_id in info.work} - {situation.job_id}
    beside = counted(len(others), "other job")
    return _met("share", f"its share is {counted(target, 'slot')} beside {beside}, and it has {workers:,}")


def _memory(situation: Situation, _: Person) -> RunCondition | None:
    """A node has memory for a worker beside those of other jobs."""
    works = {info.node: work for info in situation.usable if (work := info.work_for(situation.job_id)) is not None}
    short = [node for node, work in works.items() if work.lacks_memory]
    if not works:
        return None
    if len(short) < len(works) or situation.own_workers:
        return _met("memory", "there is memory for its workers")
    text = f"there is no memory on {_named(short)} for a worker of it beside those of other jobs"
    return _waits("memory", f"{text}: one of them is taken back first")


def _init(situation: Situation, _: Person) -> RunCondition | None:
    """A worker is through `init()`."""
    progress = situation.progress
    if not _is_processing(situation) or not situation.own_workers:
        return None
    if progress.running and progress.worked_from:
        return _met("init", "its workers are through init()")
    if not progress.init_since:
        return _met("init", "no worker is in init()")
    lasted = about(situation.now - progress.init_since)
    limit_s = progress.init_limit_s
    if not progress.worked_from:  # the job fails with its first worker, however long one may take
        limit_s = min(limit_s, situation.record.spec.get("first_task_creation_timeout", limit_s))
    limit = f" of at most {about(limit_s)}" if limit_s else ""
    advice = f"`parallelrun job stacks {situation.job_id}` shows in which line they are"
    text = f"init() has run for {lasted}{limit} in {counted(progress.workers, 'worker')}"
    return _waits("init", text, advice)


def _limits(situation: Situation, _: Person) -> RunCondition | None:
    """The rate limits that the script asks for are defined, and their services take calls."""
    if situation.missing_limits:
        names = situation.missing_limits
        advice = f"`parallelrun limit create` defines one (name: {names[0]})"
        return _blocks("rate_limits", f"{counted(len(names), 'rate limit')} not defined: {', '.join(names)}", advice)
    if situation.slowed_limits:
        name, wait_s = max(situation.slowed_limits.items(), key=lambda each: each[1])
        return _waits("rate_limits", f"the service behind the rate limit {name} takes no calls for {about(wait_s)}")
    if not situation.record.spec.get("rate_limits"):
        return None
    waits = situation.progress.waits_text()
    apart = waits and f", one after another: it {waits}"
    shares = ", ".join(f"{name} {share:.0%}" for name, share in situation.limit_shares.items())
    slower = shares and f"; services that have refused calls get a part of their rates: {shares}"
    return _met("rate_limits", f"its rate limits let calls through{apart}{slower}")


def _is_processing(situation: Situation) -> bool:
    return situation.state is JobState.PROCESSING


def _named(nodes: list[str]) -> str:
    return f"node {nodes[0]}" if len(nodes) == 1 else f"{len(nodes):,} nodes ({nodes[0]}, …)"


def _met(name: str, text: str) -> RunCondition:
    return RunCondition(name=name, state="met", text=text)


def _waits(name: str, text: str, advice: str = "") -> RunCondition:
    return RunCondition(name=name, state="waits", text=text, advice=advice)


def _blocks(name: str, text: str, advice: str) -> RunCondition:
    return RunCondition(name=name, state="blocks", text=text, advice=advice)


_CHECKS: Final[tuple[Check, ...]] = (
    _paused,
    _master,
    _disk_floor,
    _listing,
    _nodes,
    _chosen_nodes,
    _node_state,
    _preparation,
    _quota,
    _slots,
    _share,
    _memory,
    _init,
    _limits,
)
"""All checks, in the order in which their conditions must be met."""
