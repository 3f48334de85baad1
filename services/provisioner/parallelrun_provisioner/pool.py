"""One compute: what its engine and Redis say of its nodes is brought together, and what was decided is done.

What is remembered here only spares time, such as since when a node is idle: who begins without it does the same, later.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from parallelrun_core.computes.definition import Compute
from parallelrun_core.computes.launch import Launch, Shape, compute_of, launch_id
from parallelrun_core.service import telemetry
from parallelrun_core.states import NodeState
from parallelrun_core.store.connection import CONNECTION_ERRORS
from parallelrun_core.store.nodes import NodeInfo, Nodes
from parallelrun_core.store.provisioning import ComputeStatus, LaunchRecord, NodeStatus, Provisioning
from parallelrun_core.words import in_one_line
from parallelrun_provisioner.engines.interface import (
    Engine,
    EngineError,
    EngineNode,
    LaunchRefused,
    Standing,
    Surroundings,
)
from parallelrun_provisioner.policy.backoff import Backoff
from parallelrun_provisioner.policy.demand import Need, demand_of
from parallelrun_provisioner.policy.scaling import MOST_STARTING, Life, Limits, Moves, Node, moves

log = telemetry.logger()

_LIST_EVERY_S: Final = 2.0
"""How often an engine is asked for its nodes while nothing changes."""
_TELL_AGAIN_S: Final = 10.0
"""After which an engine is told again to end what is still there."""
_SHOWN: Final = 100
_PLANNED: Final = "0" * 12


@dataclass(frozen=True, kw_only=True)
class Sight:
    """What Redis says, the same for all computes of one round."""

    now: float
    """By Redis' clock."""
    nodes: Mapping[str, tuple[NodeInfo, bool]]
    """By name: the last description, and whether it is alive."""
    leaving: frozenset[str]
    """Those that were asked to leave."""
    launches: Mapping[str, LaunchRecord]


class Pool:
    """The nodes of one compute. Used by one thread.

    Args:
        is_over: the compute was deleted; all of its nodes are given back.
    """

    def __init__(
        self, compute: Compute, engine: Engine, around: Surroundings, redis: tuple[Provisioning, Nodes],
        settings: Mapping[str, str], *, is_over: bool = False,
    ) -> None:  # fmt: skip
        self.compute = compute
        self.is_over = is_over
        self.is_empty = False
        """Whether nothing is left of a compute that is over."""
        self._engine = engine
        self._around = around
        self._provisioning, self._nodes = redis
        self._settings = settings
        self._backoff = Backoff()
        self._listed: Sequence[EngineNode] = ()
        self._listed_at = 0.0
        self._lives: dict[str, tuple[Life, float]] = {}
        self._idle: dict[str, float] = {}
        self._told: dict[str, float] = {}
        """When the engine was told to end a node."""
        self._trouble = ""
        self._plan = ""

    def resume(self, status: ComputeStatus | None) -> None:
        """Go on where another provisioner was, unless the compute was defined anew since."""
        if status is not None and status.revision == self._revision:
            self._backoff = Backoff(failures=status.failures, failed_at=status.failed_at, why=status.why)

    @property
    def _revision(self) -> str:
        return self.compute.model_dump_json()

    def step(self, sight: Sight, needs: Iterable[Need]) -> ComputeStatus:
        """Bring the nodes closer to what is needed; returns how things stand. Raises redis-py's errors."""
        slots = self._slots(sight)
        demand = {} if self.is_over else demand_of(needs, slots)
        try:
            self._list(sight.now)
            nodes = self._view(sight)
            done = self._decide(demand, nodes, sight.now)
            self._do(done, sight)
            self._trouble = ""
        except CONNECTION_ERRORS:
            raise
        except Exception as error:  # whatever an engine's library raises, other computes go on
            if not isinstance(error, EngineError):
                log.exception("engine_failed", compute=self.compute.name)
            self._trouble = in_one_line(str(error))
            return self._status(sight.now, self._view(sight), Moves(wanted=sum(demand.values())))
        if done != Moves(wanted=done.wanted) or any(node.life is not Life.READY for node in nodes):
            self._listed_at = 0.0  # it is about to change
        return self._status(sight.now, nodes, done)

    def plan(self) -> str:
        """Exactly what is sent for a node of the plain shape."""
        if not self._plan:
            try:
                self._plan = self._engine.plan(self._launch(launch_id(self.compute.name, _PLANNED), Shape()))
            except EngineError as error:
                return str(error)
        return self._plan

    def close(self) -> None:
        """Free connections."""
        self._engine.close()

    # What there is

    def _slots(self, sight: Sight) -> int:
        """The workers of a node, as far as is known."""
        mine = [info.slots for info, _ in sight.nodes.values() if info.compute == self.compute.name]
        by_cpus = int(self.compute.cpus) if self.compute.cpus else 0
        return self.compute.slots or max([by_cpus, *mine], default=0) or 1

    def _list(self, now: float) -> None:
        if now - self._listed_at >= _LIST_EVERY_S or now < self._listed_at:
            self._listed = self._engine.nodes()
            self._listed_at = now

    def _view(self, sight: Sight) -> list[Node]:
        """All nodes of the compute, by whoever knows them."""
        name, now = self.compute.name, sight.now
        objects = {each.launch_id: each for each in self._listed}
        records = {each: launch for each, launch in sight.launches.items() if launch.compute == name}
        nodes = [self._node(each, objects.get(each), records.get(each), sight) for each in {**records, **objects}]
        known = {node.id for node in nodes}
        self._lives = {each: life for each, life in self._lives.items() if each in known}
        self._idle = {each: since for each, since in self._idle.items() if each in known}
        self._told = {each: at for each, at in self._told.items() if each in known and now - at < _TELL_AGAIN_S}
        return nodes

    def _node(self, each: str, there: EngineNode | None, launch: LaunchRecord | None, sight: Sight) -> Node:
        info, is_alive = sight.nodes.get(each, (None, False))
        life = _life(there, launch, info, is_alive=is_alive, is_asked=each in sight.leaving)
        before, since = self._lives.get(each, (None, sight.now))
        if before is not life:
            since = launch.at if life is Life.ASKED and launch is not None else sight.now
        self._lives[each] = life, since
        has_work = info is not None and (bool(info.jobs) if info.in_hand is None else info.in_hand > 0)
        if life is Life.READY and not has_work:
            self._idle.setdefault(each, sight.now)
        else:
            self._idle.pop(each, None)
        return Node(
            id=each,
            life=life,
            since=since,
            shape=Shape(image=launch.image) if launch is not None else Shape(),
            idle_since=self._idle.get(each),
            ends_at=(there.ends_at if there is not None else None) or (info.ends_at or None if info else None),
        )

    # What is done

    def _decide(self, demand: Mapping[Shape, int], nodes: Sequence[Node], now: float) -> Moves:
        compute = self.compute
        limits = Limits(
            least=0 if self.is_over else compute.min_instances,
            most=compute.max_instances,
            idle_s=0.0 if self.is_over else compute.idle_time_before_scale_down,
        )
        is_starting = any(node.life in (Life.ASKED, Life.PENDING, Life.STARTING) for node in nodes)
        most = 0 if self._backoff.failures and is_starting else self._backoff.launches(now, most=MOST_STARTING)
        return moves(demand, limits, nodes, now, most_launches=most)

    def _do(self, done: Moves, sight: Sight) -> None:
        self._learn(done, sight)
        over = [each for each in (*done.remove, *done.withdraw) if each not in self._told]
        if over:
            self._engine.terminate(over)
            self._told |= dict.fromkeys(over, sight.now)
        if done.drain:
            log.info("nodes_asked_to_leave", compute=self.compute.name, nodes=list(done.drain))
            self._nodes.ask_to_leave(done.drain)
        self._clean(done, sight)
        for shape in done.launch:
            if not self._ask_for(shape, sight.now):
                break

    def _learn(self, done: Moves, sight: Sight) -> None:
        """Note which launches have come to something, and which haven't."""
        objects = {each.launch_id: each for each in self._listed}
        for each, (life, _) in self._lives.items():
            launch, there = sight.launches.get(each), objects.get(each)
            if life in (Life.READY, Life.LEAVING) and (launch is None or not launch.has_come):
                self._backoff = Backoff()
                at = launch.at if launch is not None else sight.now
                image = launch.image if launch is not None else ""
                self._provisioning.record(
                    each, LaunchRecord(compute=self.compute.name, at=at, image=image, has_come=True)
                )
            elif launch is not None and (life is Life.ENDED or each in done.failed):
                words = there.words if there is not None else ""
                was_wanted = each not in self._told and not (there is not None and there.was_preempted)
                if was_wanted and not launch.has_come:
                    self._failed(each, launch, sight.now, words or "it ended before its agent had come")
                self._provisioning.forget([each])  # so that it counts once

    def _failed(self, each: str, launch: LaunchRecord, now: float, why: str) -> None:
        why = in_one_line(why)[:1000]
        log.warning("launch_failed", compute=self.compute.name, node=each, why=why)
        self._backoff = self._backoff.failed(now, asked_at=launch.at, why=why)

    def _clean(self, done: Moves, sight: Sight) -> None:
        """Forget what nothing is left of."""
        listed = {each.launch_id for each in self._listed}
        self._provisioning.forget([each for each in done.forget if each not in listed])
        asked = [each for each in sight.leaving if compute_of(each) == self.compute.name and each not in listed]
        self._nodes.asked_no_more([each for each in asked if each not in sight.nodes])
        alive = [each for each, (life, _) in self._lives.items() if life is not Life.ENDED and each not in done.forget]
        self.is_empty = self.is_over and not listed and not alive

    def _ask_for(self, shape: Shape, now: float) -> bool:
        """Ask for one node; whether it makes sense to go on."""
        each = launch_id(self.compute.name, secrets.token_hex(6))
        asked = LaunchRecord(compute=self.compute.name, at=now, image=shape.image)
        if not self._provisioning.record(each, asked):
            return False  # another provisioner acts
        try:
            self._engine.launch(self._launch(each, shape))
        except LaunchRefused as error:
            self._failed(each, asked, now, str(error))
            self._provisioning.forget([each])
            return False
        except EngineError as error:
            self._failed(each, asked, now, str(error))
            return False
        log.info("node_launched", compute=self.compute.name, node=each)
        return True

    def _launch(self, each: str, shape: Shape) -> Launch:
        slots = ("--slots", str(self.compute.slots)) if self.compute.slots else ()
        return Launch(
            id=each,
            compute=self.compute.name,
            shape=shape,
            arguments=("--node", each, "--compute", self.compute.name, *slots),
            environment=self._settings,
        )

    # What is shown

    def _status(self, now: float, nodes: Sequence[Node], done: Moves) -> ComputeStatus:
        words = {each.launch_id: each.words for each in self._listed}
        lives = [node.life for node in nodes]
        shown = [node for node in nodes if node.life is not Life.ENDED]
        return ComputeStatus(
            at=now,
            wanted=done.wanted,
            ready=lives.count(Life.READY),
            launching=sum(lives.count(life) for life in (Life.ASKED, Life.PENDING, Life.STARTING)) + len(done.launch),
            leaving=lives.count(Life.LEAVING) + lives.count(Life.LEFT),
            nodes=[
                NodeStatus(
                    node=node.id, stage=node.life.value, since=node.since, words=in_one_line(words.get(node.id, ""))
                )
                for node in sorted(shown, key=lambda node: node.id)[:_SHOWN]
            ],
            failures=self._backoff.failures,
            failed_at=self._backoff.failed_at,
            why=self._trouble or self._backoff.why,
            next_attempt=self._backoff.next_at,
            plan=self.plan(),
            revision=self._revision,
        )


def _life(
    there: EngineNode | None, launch: LaunchRecord | None, info: NodeInfo | None, *, is_alive: bool, is_asked: bool
) -> Life:
    if there is not None and there.standing is Standing.ENDED:
        return Life.ENDED
    if info is not None and is_alive:
        return Life.LEAVING if is_asked or info.state is NodeState.DRAINING else Life.READY
    if info is not None:
        return Life.LOST if there is not None else Life.ENDED
    if launch is not None and launch.has_come:
        return Life.LEFT if there is not None else Life.ENDED
    if there is None:
        return Life.ASKED
    return Life.STARTING if there.standing is Standing.RUNNING else Life.PENDING
