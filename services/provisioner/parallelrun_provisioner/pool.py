"""The nodes of one compute: brings together what its engine and Redis say of them, and does what was decided.

What is remembered here only spares time, such as since when a node is idle: who begins without it does the same, later.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from parallelrun_core.computes.definition import Compute
from parallelrun_core.computes.launch import Launch, Shape, compute_of, launch_id
from parallelrun_core.service import telemetry
from parallelrun_core.store.connection import CONNECTION_ERRORS
from parallelrun_core.store.nodes import NodeInfo, NodeRegistry
from parallelrun_core.store.provisioning import ImageBuild, LaunchRecord, NodeStatus, Provisioning, ProvisioningStatus
from parallelrun_core.untrusted.sanitize import in_one_line
from parallelrun_core.wire.states import NodeState
from parallelrun_provisioner.attempts import LaunchAttempts
from parallelrun_provisioner.engines.interface import (
    BuildsImages,
    Engine,
    EngineEnvironment,
    EngineError,
    EngineNode,
    ImageState,
    LaunchRefused,
    NodeStanding,
)
from parallelrun_provisioner.plans import Plans
from parallelrun_provisioner.policy.demand import Need, demand_of, images_to_build
from parallelrun_provisioner.policy.scaling import (
    NodePhase,
    PoolNode,
    ScalingActions,
    ScalingLimits,
    list_after_s,
    moves,
    releases,
)

log = telemetry.logger()

_ASKS_FOR_S: Final = 10.0
"""For how long a round asks for nodes: other computes wait for their turn."""
_TELL_AGAIN_S: Final = 10.0
"""After which an engine is told again to end what is still there."""
_SHOWN: Final = 100
_PLANNED: Final = "0" * 12


@dataclass(frozen=True, kw_only=True)
class ClusterSnapshot:
    """The state of the cluster on Redis, the same for all computes of one round."""

    now: float
    """By Redis' clock."""
    nodes: Mapping[str, tuple[NodeInfo, bool]]
    """By name: the last description, and whether it is alive."""
    leaving: frozenset[str]
    """The nodes that were asked to leave."""
    launches: Mapping[str, LaunchRecord]


class Pool:
    """The nodes of one compute. Used by one thread.

    Args:
        revision: another one each time that the compute is defined: whoever does that wants what failed to be tried
            again.
        is_over: the compute was deleted; all of its nodes are given back.
    """

    def __init__(
        self, compute: Compute, engine: Engine, engine_env: EngineEnvironment, redis: tuple[Provisioning, NodeRegistry],
        settings: Mapping[str, str], *, revision: str = "", is_over: bool = False,
    ) -> None:  # fmt: skip
        self.compute = compute
        self.revision = revision
        self.is_over = is_over
        self.is_empty = False
        """Whether nothing is left of a compute that is over."""
        self.left: Sequence[str] = ()
        """What there was still when its nodes were given back."""
        self._engine = engine
        self._engine_env = engine_env
        self._provisioning, self._nodes = redis
        self._settings = settings
        self._attempts = LaunchAttempts(compute.name, compute.kind, self._provisioning)
        self._listed: Sequence[EngineNode] = ()
        self._listed_at = 0.0
        self._cost_s = 0.0
        """How long the engine took to list them."""
        self._changed_at = 0.0
        self._lived: Mapping[str, NodePhase] = {}
        """As of the round before."""
        self._slots_seen = 0
        self._lives: dict[str, tuple[NodePhase, float]] = {}
        self._idle: dict[str, float] = {}
        self._told: dict[str, float] = {}
        """When the engine was told to end a node."""
        self._images: Mapping[str, ImageState] = {}
        """Those that are built for jobs."""
        self._trouble = ""
        self._plans = Plans(engine, lambda shape: self._launch(launch_id(compute.name, _PLANNED), shape))

    def resume(self, status: ProvisioningStatus | None) -> None:
        """Go on where another provisioner was, unless the compute was defined anew since."""
        if status is None:
            return
        self._slots_seen = status.slots
        if status.revision == self.revision:
            self._attempts.resume(status)

    def step(self, sight: ClusterSnapshot, needs: Iterable[Need]) -> ProvisioningStatus:
        """Bring the nodes closer to what is needed; returns how things stand. Raises redis-py's errors."""
        slots, needs = self._slots(sight), () if self.is_over else tuple(needs)
        demand = demand_of(needs, slots)
        try:
            self._build(images_to_build(needs, slots))
            self._list(sight.now)
            nodes = self._view(sight)
            done = self._decide(demand, nodes, sight.now)
            self._do(done, nodes, sight)
            self._trouble = ""
        except CONNECTION_ERRORS:
            raise
        except Exception as error:  # whatever an engine's library raises, other computes go on
            if not isinstance(error, EngineError):
                log.exception("engine_failed", compute=self.compute.name)
            self._trouble = in_one_line(str(error))
            return self._status(sight.now, self._view(sight), ScalingActions(wanted=sum(demand.values())), demand)
        self._note_changes(done, nodes, sight.now)
        return self._status(sight.now, nodes, done, demand)

    def release(self, sight: ClusterSnapshot, *, by_force: bool) -> bool:
        """Give back all nodes, whatever they do; whether nothing is left of them. Raises redis-py's errors.

        Args:
            by_force: also end those that were asked to leave, and are there still.
        """
        try:
            self._listed = self._engine.nodes()
            nodes = self._view(sight)
            self._do(releases(nodes, by_force=by_force), nodes, sight)
        except CONNECTION_ERRORS:
            raise
        except Exception as error:  # whatever an engine's library raises, it may answer next time
            log.warning("release_failed", compute=self.compute.name, error=in_one_line(str(error)))
            return False
        listed = {each.launch_id for each in self._listed}
        # What has ended is still to be removed; what an engine doesn't list can only be told to end.
        gone = {node.id for node in nodes if node.life in (NodePhase.ENDED, NodePhase.ASKED) and node.id in self._told}
        gone |= {node.id for node in nodes if node.life is NodePhase.ENDED and node.id not in listed}
        self.left = [node.id for node in nodes if node.id not in gone]
        return not self.left

    def close(self) -> None:
        self._engine.close()

    # What there is

    def _slots(self, sight: ClusterSnapshot) -> int:
        """The workers of a node, as far as is known."""
        mine = [info.slots for info, _ in sight.nodes.values() if info.compute == self.compute.name]
        self._slots_seen = max(mine, default=self._slots_seen)
        by_cpus = int(self.compute.cpus) if self.compute.cpus else 0
        return self.compute.slots or max(by_cpus, self._slots_seen) or 1

    def _list(self, now: float) -> None:
        pause_s = list_after_s(quiet_s=now - self._changed_at, cost_s=self._cost_s)
        if now - self._listed_at >= pause_s or now < self._listed_at:
            began = time.monotonic()
            self._listed = self._engine.nodes()
            self._listed_at, self._cost_s = now, time.monotonic() - began

    def _note_changes(self, done: ScalingActions, nodes: Iterable[PoolNode], now: float) -> None:
        """Ask the engine soon after an action, or when an agent says that its node has changed."""
        lives = {node.id: node.life for node in nodes}
        if done != ScalingActions(wanted=done.wanted) or lives != self._lived or now < self._changed_at:
            self._changed_at = now
        self._lived = lives

    def _view(self, sight: ClusterSnapshot) -> list[PoolNode]:
        """All nodes of the compute, by whoever knows them."""
        objects = {each.launch_id: each for each in self._listed}
        records = self._attempts.records(sight.launches)
        nodes = [self._node(each, objects.get(each), records.get(each), sight) for each in {**records, **objects}]
        ids = {node.id for node in nodes}
        self._lives = {each: life for each, life in self._lives.items() if each in ids}
        self._idle = {each: since for each, since in self._idle.items() if each in ids}
        self._told = {each: at for each, at in self._told.items() if each in ids}
        return nodes

    def _node(
        self, each: str, engine_node: EngineNode | None, launch: LaunchRecord | None, sight: ClusterSnapshot
    ) -> PoolNode:
        info, is_alive = sight.nodes.get(each, (None, False))
        life = _life(engine_node, launch, info, is_alive=is_alive, is_asked=each in sight.leaving)
        before, since = self._lives.get(each, (None, sight.now))
        if before is not life:
            since = launch.at if life is NodePhase.ASKED and launch is not None else sight.now
        self._lives[each] = life, since
        has_work = info is not None and (bool(info.jobs) if info.in_hand is None else info.in_hand > 0)
        if life is NodePhase.READY and not has_work:
            self._idle.setdefault(each, sight.now)
        else:
            self._idle.pop(each, None)
        return PoolNode(
            id=each,
            life=life,
            since=since,
            shape=Shape(image=_image(engine_node, launch, info)),
            idle_since=self._idle.get(each),
            ends_at=(engine_node.ends_at if engine_node is not None else None)
            or (info.ends_at or None if info else None),
        )

    # What is done

    def _build(self, jobs_by_image: Mapping[str, Collection[str]]) -> None:
        if isinstance(self._engine, BuildsImages):
            self._images = self._engine.build(jobs_by_image)

    def _decide(self, demand: Mapping[Shape, int], nodes: Sequence[PoolNode], now: float) -> ScalingActions:
        compute = self.compute
        limits = ScalingLimits(
            least=0 if self.is_over else compute.min_instances,
            most=compute.max_instances,
            idle_s=0.0 if self.is_over else compute.idle_time_before_scale_down,
        )
        unbuilt = {Shape(image=image): 0 for image, state in self._images.items() if not state.is_there}
        return moves(demand, limits, nodes, now, paused=self._attempts.paused(nodes, now) | unbuilt)

    def _do(self, done: ScalingActions, nodes: Sequence[PoolNode], sight: ClusterSnapshot) -> None:
        self._learn(done, nodes, sight)
        again = sight.now - _TELL_AGAIN_S
        over = [each for each in (*done.remove, *done.withdraw) if self._told.get(each, again) <= again]
        if over and self._provisioning.stays():
            self._engine.terminate(over)
            self._told |= dict.fromkeys(over, sight.now)
        if done.drain and self._provisioning.stays():
            log.info("nodes_asked_to_leave", compute=self.compute.name, nodes=list(done.drain))
            self._nodes.ask_to_leave(done.drain)
        self._clean(done, sight)
        self._ask_for(done.launch, sight.now)

    def _learn(self, done: ScalingActions, nodes: Sequence[PoolNode], sight: ClusterSnapshot) -> None:
        """Note which launches have come to something, and which haven't."""
        objects = {each.launch_id: each for each in self._listed}
        for node in nodes:
            launch = sight.launches.get(node.id)
            if node.id in done.forget:
                if launch is not None:
                    self._attempts.missing(node.id, launch, sight.now)
                continue
            self._attempts.learn(
                node, launch, objects.get(node.id), sight.now,
                is_over=node.life is NodePhase.ENDED or node.id in done.remove,
                is_asked=node.id in self._told or node.id in sight.leaving,
            )  # fmt: skip

    def _clean(self, done: ScalingActions, sight: ClusterSnapshot) -> None:
        """Forget what nothing is left of."""
        listed = {each.launch_id for each in self._listed}
        self._attempts.forget([each for each in done.forget if each not in listed])
        leaving = [each for each in sight.leaving if compute_of(each) == self.compute.name and each not in listed]
        self._nodes.asked_no_more([each for each in leaving if each not in sight.nodes])
        alive = [
            each for each, (life, _) in self._lives.items() if life is not NodePhase.ENDED and each not in done.forget
        ]
        self.is_empty = self.is_over and not listed and not alive

    def _ask_for(self, shapes: Iterable[Shape], now: float) -> None:
        """Ask for nodes, one after the other. A shape that has failed in this round doesn't stop others."""
        until = time.monotonic() + _ASKS_FOR_S
        for shape in shapes:
            if self._attempts.has_failed_at(shape, now) or time.monotonic() > until:
                continue
            each = launch_id(self.compute.name, secrets.token_hex(6))
            launch = self._attempts.begin(each, shape, now)
            if launch is None:
                return  # another provisioner acts
            try:
                self._engine.launch(self._launch(each, shape))
            except LaunchRefused as error:
                self._attempts.failed(each, launch, now, str(error))
                self._attempts.forget([each])
            except EngineError as error:
                self._attempts.failed(each, launch, now, str(error))
                return
            else:
                self._attempts.accepted(each)
                log.info("node_launched", compute=self.compute.name, node=each)

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

    def _status(
        self, now: float, nodes: Sequence[PoolNode], done: ScalingActions, demand: Mapping[Shape, int]
    ) -> ProvisioningStatus:
        words = {each.launch_id: each.words for each in self._listed}
        lives = [node.life for node in nodes]
        visible = [node for node in nodes if node.life is not NodePhase.ENDED]
        pauses = self._attempts.pauses()
        last = max(pauses.values(), key=lambda pause: pause.failed_at, default=None)
        missing = {image: state for image, state in self._images.items() if not state.is_there}
        first = sorted(missing, key=lambda image: (not missing[image].failure, missing[image].is_queued))[:_SHOWN]
        builds = {image: _build(missing[image], now) for image in first}
        of_images = next((each.failure for each in builds.values() if each.failure), "")
        return ProvisioningStatus(
            at=now,
            wanted=done.wanted,
            ready=lives.count(NodePhase.READY),
            launching=sum(lives.count(life) for life in (NodePhase.ASKED, NodePhase.PENDING, NodePhase.STARTING))
            + len(done.launch),
            leaving=lives.count(NodePhase.LEAVING) + lives.count(NodePhase.LEFT),
            nodes=[
                NodeStatus(
                    node=node.id, stage=node.life.value, since=node.since, words=in_one_line(words.get(node.id, ""))
                )
                for node in sorted(visible, key=lambda node: node.id)[:_SHOWN]
            ],
            failures=last.failures if last else 0,
            why=self._trouble or (last.why if last else of_images),
            next_attempt=last.next_attempt if last else 0.0,
            trouble=self._trouble,
            pauses=pauses,
            builds=builds,
            more_builds=len(missing) - len(builds),
            slots=self._slots_seen,
            plan=self._plans.of(Shape()),
            plans=self._plans.of_images([*demand, *(node.shape for node in nodes)]),
            revision=self.revision,
        )


def _build(state: ImageState, now: float) -> ImageBuild:
    failed_at = now - state.failed_s if state.failure else 0.0
    return ImageBuild(said=state.said, failure=state.failure, failed_at=failed_at)


def _image(engine_node: EngineNode | None, launch: LaunchRecord | None, info: NodeInfo | None) -> str:
    """The image of a node's shape: Redis may have forgotten its launch, and the engine knows what it was made of."""
    if launch is not None:
        return launch.image
    return info.image if info is not None else engine_node.image if engine_node is not None else ""


def _life(
    engine_node: EngineNode | None,
    launch: LaunchRecord | None,
    info: NodeInfo | None,
    *,
    is_alive: bool,
    is_asked: bool,
) -> NodePhase:
    if engine_node is not None and engine_node.standing is NodeStanding.ENDED:
        return NodePhase.ENDED
    if info is not None and is_alive:
        return NodePhase.LEAVING if is_asked or info.state is NodeState.DRAINING else NodePhase.READY
    if info is not None:
        return NodePhase.LOST if engine_node is not None else NodePhase.ENDED
    if launch is not None and launch.has_come:
        return NodePhase.LEFT if engine_node is not None else NodePhase.ENDED
    if engine_node is None:
        return NodePhase.ASKED
    return NodePhase.STARTING if engine_node.standing is NodeStanding.RUNNING else NodePhase.PENDING
