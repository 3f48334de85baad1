"""Outcomes of the launches of one compute, and when others may follow: for each shape of node by itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping

import msgspec

from parallelrun_core.computes.launch import Shape
from parallelrun_core.service import telemetry
from parallelrun_core.store.provisioning import LaunchRecord, Pause, Provisioning, ProvisioningStatus
from parallelrun_core.untrusted.sanitize import in_one_line
from parallelrun_provisioner.engines.interface import EngineNode
from parallelrun_provisioner.policy.circuit_breaker import CircuitBreaker, Verdict, verdict
from parallelrun_provisioner.policy.scaling import MOST_STARTING, NodePhase, PoolNode

log = telemetry.logger()

_ON_ITS_WAY = frozenset({NodePhase.ASKED, NodePhase.PENDING, NodePhase.STARTING})


class LaunchAttempts:
    """The launches of one compute. Its methods raise redis-py's errors.

    Args:
        kind: of the compute.
    """

    def __init__(self, compute: str, kind: str, provisioning: Provisioning) -> None:
        self._compute = compute
        self._kind = kind
        self._provisioning = provisioning
        self._backoffs: dict[Shape, CircuitBreaker] = {}
        """Of shapes whose last launches have failed."""
        self._accepted: set[str] = set()
        """Those that the engine has accepted in this life."""

    def resume(self, status: ProvisioningStatus) -> None:
        """Go on where another provisioner was."""
        for image, pause in status.pauses.items():
            self._backoffs[Shape(image=image)] = CircuitBreaker(
                failures=pause.failures, failed_at=pause.failed_at, why=pause.why
            )

    def records(self, launches: Mapping[str, LaunchRecord]) -> dict[str, LaunchRecord]:
        """Return the records of all launches that are this compute's, and of its kind."""
        return {
            each: launch
            for each, launch in launches.items()
            if launch.compute == self._compute and launch.kind in ("", self._kind)
        }

    def paused(self, nodes: Iterable[PoolNode], now: float) -> dict[Shape, int]:
        """The shapes whose launches have failed, and how many of each may be asked for now."""
        on_their_way = Counter(node.shape for node in nodes if node.life in _ON_ITS_WAY)
        return {
            shape: 0 if on_their_way[shape] else backoff.launches(now, most=MOST_STARTING)
            for shape, backoff in self._backoffs.items()
        }

    def has_failed_at(self, shape: Shape, now: float) -> bool:
        """Return whether a launch of this shape has failed in the round of this time."""
        return shape in self._backoffs and self._backoffs[shape].failed_at == now

    def begin(self, each: str, shape: Shape, now: float) -> LaunchRecord | None:
        """Record a launch before its engine is asked; None: another provisioner acts."""
        launch = LaunchRecord(compute=self._compute, kind=self._kind, at=now, image=shape.image)
        return launch if self._provisioning.record(each, launch) else None

    def accepted(self, each: str) -> None:
        """The engine has not objected."""
        self._accepted.add(each)

    def failed(self, each: str, launch: LaunchRecord, now: float, why: str) -> None:
        """A launch has come to nothing."""
        why, shape = in_one_line(why)[:1000], Shape(image=launch.image)
        log.warning("launch_failed", compute=self._compute, node=each, image=launch.image, why=why)
        self._backoffs[shape] = self._backoffs.get(shape, CircuitBreaker()).failed(now, asked_at=launch.at, why=why)

    def missing(self, each: str, launch: LaunchRecord, now: float) -> None:
        """The engine doesn't know a node that was asked for; it has refused nothing, if we are those who asked."""
        if each in self._accepted:
            self.failed(each, launch, now, "its engine has accepted it, and doesn't know it")
        self._accepted.discard(each)

    def learn(
        self, node: PoolNode, launch: LaunchRecord | None, engine_node: EngineNode | None, now: float,
        *, is_over: bool, is_asked: bool,
    ) -> None:  # fmt: skip
        """Note what a node says of its launch.

        Args:
            launch: as recorded; None: Redis has forgotten it.
            engine_node: the engine's object.
            is_over: it has ended, or is removed now.
            is_asked: it was asked to leave, or the engine to end it.
        """
        launch = self._recorded_launch(node, launch, now)
        if launch is None:
            return
        if not launch.is_judged:
            launch_verdict = verdict(
                node.life,
                lived_s=now - launch.came_at if launch.has_come else 0.0,
                has_work=node.life is NodePhase.READY and node.idle_since is None,
                is_asked=is_asked,
                is_over=is_over,
                was_taken=engine_node is not None and engine_node.was_preempted,
            )
            self._judge(node, launch, launch_verdict, now, engine_node.words if engine_node is not None else "")
        if node.life is NodePhase.ENDED:
            self.forget([node.id])

    def forget(self, ids: Collection[str]) -> None:
        """Nothing is left of these."""
        self._provisioning.forget(ids)
        self._accepted.difference_update(ids)

    def _recorded_launch(self, node: PoolNode, launch: LaunchRecord | None, now: float) -> LaunchRecord | None:
        """The launch of a node, recorded anew when its agent is seen for the first time."""
        if node.life not in (NodePhase.READY, NodePhase.LEAVING) or (launch is not None and launch.has_come):
            return launch
        lost = LaunchRecord(compute=self._compute, kind=self._kind, at=now, image=node.shape.image)
        launch = msgspec.structs.replace(launch or lost, has_come=True, came_at=now)
        self._provisioning.record(node.id, launch)
        return launch

    def _judge(self, node: PoolNode, launch: LaunchRecord, launch_verdict: Verdict, now: float, words: str) -> None:
        if launch_verdict is Verdict.SUCCESS:
            self._backoffs.pop(node.shape, None)
        elif launch_verdict is Verdict.FAILURE:
            lived_s = now - launch.came_at
            early = f"it ended {lived_s:.0f} s after it had come" if launch.has_come else "it ended before it had come"
            self.failed(node.id, launch, now, f"{early}: {words}" if words else early)
        if launch_verdict is not Verdict.OPEN:
            self._provisioning.record(node.id, msgspec.structs.replace(launch, is_judged=True))

    # What is shown

    def pauses(self) -> dict[str, Pause]:
        """The failures of each image."""
        return {
            shape.image: Pause(
                failures=each.failures, failed_at=each.failed_at, why=each.why, next_attempt=each.next_at
            )
            for shape, each in self._backoffs.items()
        }
