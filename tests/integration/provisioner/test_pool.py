"""A provisioner may die, wait or be replaced anywhere: no node is doubled, and none is nobody's."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest

from parallelrun_core.computes.document import read_definition
from parallelrun_core.computes.launch import Launch, Shape
from parallelrun_core.names.computes import BuiltImage
from parallelrun_core.store.nodes import NodeInfo, NodeRegistry
from parallelrun_core.store.provisioning import Provisioning, ProvisioningStatus
from parallelrun_core.wire.progress import Progress
from parallelrun_core.wire.states import JobState, NodeState
from parallelrun_master.leader.compute_watch import why_missing
from parallelrun_provisioner.engines.interface import (
    EngineEnvironment,
    EngineNode,
    ImageState,
    LaunchRefused,
    NodeStanding,
)
from parallelrun_provisioner.lease import LeaseKeeper
from parallelrun_provisioner.policy.demand import Need
from parallelrun_provisioner.policy.scaling import MISSING_S
from parallelrun_provisioner.pool import ClusterSnapshot, Pool

if TYPE_CHECKING:
    from redis import Redis

pytestmark = pytest.mark.integration


class Died(BaseException):
    """The provisioner was killed here."""


class FakeEngine:
    """An engine that remembers what it was asked."""

    def __init__(self) -> None:
        self.objects: dict[str, NodeStanding] = {}
        self.images: dict[str, str] = {}
        self.asked: list[str] = []
        self.refuses = ""
        self.refused_image = ""
        self.listings = 0
        self.dies = ""

    def plan(self, launch: Launch) -> str:
        if self.refuses and launch.shape.image == self.refused_image:
            raise LaunchRefused(self.refuses)
        return " ".join([launch.shape.image, *launch.arguments])

    def launch(self, launch: Launch) -> None:
        if self.dies == "before":
            raise Died
        if self.refuses and launch.shape.image == self.refused_image:
            raise LaunchRefused(self.refuses)
        self.asked.append(launch.id)
        self.objects.setdefault(launch.id, NodeStanding.PENDING)
        self.images[launch.id] = launch.shape.image
        if self.dies == "after":
            raise Died

    def nodes(self) -> Sequence[EngineNode]:
        self.listings += 1
        return [
            EngineNode(launch_id=each, standing=standing, image=self.images[each])
            for each, standing in self.objects.items()
        ]

    def terminate(self, launch_ids: Collection[str]) -> None:
        for each in launch_ids:
            self.objects.pop(each, None)

    def close(self) -> None:
        pass


class Builder(FakeEngine):
    """One that builds images, which takes as long as the test wants."""

    def __init__(self) -> None:
        super().__init__()
        self.state = ImageState(said="Step 1/9")
        self.states: dict[str, ImageState] = {}
        self.wanted: dict[str, list[str]] = {}

    def build(self, wanted: Mapping[str, Collection[str]]) -> Mapping[str, ImageState]:
        self.wanted = {image: list(jobs) for image, jobs in wanted.items()}
        return {image: self.states.get(image, self.state) for image in wanted}


class NodePhase:
    """One provisioner's life with a compute of at most two nodes, for which a job asks."""

    def __init__(
        self, redis: Redis, engine: FakeEngine, status: ProvisioningStatus | None = None, *, kind: str = "local",
        is_over: bool = False, beside: NodePhase | None = None,
    ) -> None:  # fmt: skip
        self.redis = redis
        self.provisioning: Provisioning = beside.provisioning if beside else Provisioning(redis)
        self.nodes = NodeRegistry(redis)
        compute = read_definition({"name": "cpus", "type": kind, "max_instances": 2, "idle_time_before_scale_down": 5})
        around = EngineEnvironment(cluster="c", root=Path("/nowhere"), redis_url="redis://x")
        self.pool = Pool(compute, engine, around, (self.provisioning, self.nodes), {}, is_over=is_over)
        self.pool.resume(status)

    def step(self, now: float, *, wanted: int = 2, images: Sequence[str] = ("",)) -> ProvisioningStatus:
        assert self.provisioning.lead()
        return self.act_on(self.sight(now), wanted=wanted, images=images)

    def sight(self, now: float) -> ClusterSnapshot:
        return ClusterSnapshot(
            now=now,
            nodes={info.node: (info, is_alive) for info, is_alive in self.nodes.all()},
            leaving=frozenset(self.nodes.asked_to_leave()),
            launches=self.provisioning.launches(),
        )

    def act_on(self, sight: ClusterSnapshot, *, wanted: int = 2, images: Sequence[str] = ("",)) -> ProvisioningStatus:
        """A round of one that believes to be the one that acts."""
        progress = Progress(scheduled=100, listing_done=True)
        needs = [
            Need(
                state=JobState.PROCESSING, progress=progress, instance_count=wanted, workers_per_node=None,
                shape=Shape(image=image), job=f"job-{image[:5]}",
            )
            for image in images
        ]  # fmt: skip
        return self.pool.step(sight, needs if wanted else [])


def come(redis: Redis, engine: FakeEngine, *, in_hand: int) -> None:
    """The agents of all nodes that have not ended are there."""
    for each in [each for each, standing in engine.objects.items() if standing is not NodeStanding.ENDED]:
        engine.objects[each] = NodeStanding.RUNNING
        info = NodeInfo(
            node=each, session="s", host="h", pid=1, slots=1, busy=1, state=NodeState.READY, version="1", started=1.0,
            compute="cpus", jobs=["job"], in_hand=in_hand, image=engine.images[each],
        )  # fmt: skip
        NodeRegistry(redis).beat(info, lease_ms=60_000)


def test_a_provisioner_that_dies_beside_a_launch_leaves_no_node_unknown(redis: Redis) -> None:
    engine = FakeEngine()
    engine.dies = "before"
    with pytest.raises(Died):
        NodePhase(redis, engine).step(100.0)
    redis.delete("parallelrun:provisioner")
    engine.dies = "after"
    with pytest.raises(Died):
        NodePhase(redis, engine).step(101.0)
    redis.delete("parallelrun:provisioner")
    engine.dies = ""
    last = NodePhase(redis, engine)
    assert last.step(102.0).launching == 2, "one that is there, and one that may be"
    assert len(engine.asked) == 1
    last.step(102.0 + MISSING_S)
    last.step(103.0 + MISSING_S)
    assert len(engine.asked) == len(engine.objects) == 2


def test_only_the_one_that_acts_asks_for_nodes(redis: Redis) -> None:
    engine = FakeEngine()
    first, second = NodePhase(redis, engine), NodePhase(redis, engine)
    assert first.provisioning.lead()
    assert not second.provisioning.lead()
    before = first.sight(100.0)
    redis.delete("parallelrun:provisioner")  # its lease has run out, and it doesn't know
    second.step(100.0)
    engine.nodes = lambda: []  # type: ignore[method-assign]  # it lags behind
    first.act_on(before)
    assert len(engine.asked) == 2
    first.provisioning.resign()
    assert second.provisioning.lead(), "only who acts can resign"


def test_a_node_with_work_in_hand_stays_and_an_idle_one_is_asked_to_leave_first(redis: Redis) -> None:
    engine = FakeEngine()
    life = NodePhase(redis, engine)
    life.step(100.0)
    come(redis, engine, in_hand=1)
    for second in range(101, 200, 3):
        life.step(float(second), wanted=0)
    assert life.nodes.asked_to_leave() == set()
    come(redis, engine, in_hand=0)
    life.step(200.0, wanted=0)
    assert life.nodes.asked_to_leave() == set()
    life.step(206.0, wanted=0)
    assert life.nodes.asked_to_leave() == set(engine.objects)
    assert len(engine.objects) == 2, "nothing is ended before it has left"


def test_a_refused_launch_is_told_and_pauses_which_the_next_provisioner_knows(redis: Redis) -> None:
    engine = FakeEngine()
    engine.refuses = "no room\nfor more"
    life = NodePhase(redis, engine)
    life.step(100.0)
    told = life.step(101.0)
    assert (told.failures, told.why, told.next_attempt) == (2, "no room for more", 161.0)
    engine.refuses = ""
    life.provisioning.resign()
    later = NodePhase(redis, engine, told)
    later.step(102.0)
    assert engine.asked == []
    later.step(161.0)
    assert len(engine.asked) == 1, "one, to see whether it can be had"
    come(redis, engine, in_hand=1)
    later.step(162.0)
    later.step(163.0)
    assert len(engine.asked) == 2


def test_a_job_whose_image_can_not_be_had_holds_up_no_other(redis: Redis) -> None:
    engine = FakeEngine()
    engine.refuses, engine.refused_image = "no such image", "missing"
    life = NodePhase(redis, engine)
    for second in range(100, 110):
        told = life.step(float(second), images=("missing", ""))
    assert list(engine.images.values()) == ["", ""], "the other one has the room, too"
    assert {image: pause.failures for image, pause in told.pauses.items()} == {"missing": 2}
    assert (told.why, told.next_attempt) == ("no such image", 161.0)


def test_a_build_holds_up_no_other_job_and_its_nodes_come_when_it_is_done(redis: Redis) -> None:
    engine, image = Builder(), BuiltImage("a" * 64, "Dockerfile").name
    life = NodePhase(redis, engine)
    told = life.step(100.0, images=(image, "other", ""))
    assert engine.wanted == {image: ["job-build"]}
    assert sorted(engine.images.values()) == ["", "other"], "others have the room meanwhile"
    assert (told.builds[image].said, told.builds[image].failure, told.why) == ("Step 1/9", "", "")
    assert told.wanted, "a job that waits for the build alone is served"
    engine.objects.clear()
    engine.state = ImageState(is_there=True)
    told = life.step(200.0, images=(image,))
    assert told.builds == {}
    assert list(engine.images.values())[2:] == [image, image]
    life.step(201.0, wanted=0)
    assert engine.wanted == {}, "nobody wants it any more"


def test_an_image_that_can_not_be_built_is_asked_for_by_nobody_and_its_jobs_are_told(redis: Redis) -> None:
    engine, image = Builder(), BuiltImage("a" * 64, "Dockerfile").name
    engine.state = ImageState(failure="unknown instruction: FORM")
    life = NodePhase(redis, engine)
    for second in range(100, 105):
        told = life.step(float(second), images=(image,))
    assert engine.asked == []
    assert told.builds[image].failure == told.why == "unknown instruction: FORM"
    assert told.pauses == {}, "it isn't tried again, as a launch would be"


def test_a_thousand_images_that_wait_make_no_large_status_and_hide_no_failure(redis: Redis) -> None:
    engine = Builder()
    images = [BuiltImage(f"{number:064x}", "Dockerfile").name for number in range(1000)]
    engine.state = ImageState(said="waiting for the builds of other images", is_queued=True)
    engine.states[images[998]] = ImageState(said="Step 1/9")
    engine.states[images[999]] = ImageState(failure="no such base", failed_s=5.0)
    told = NodePhase(redis, engine).step(100.0, images=images)
    assert list(told.builds)[:2] == [images[999], images[998]]
    assert told.builds[images[999]].failed_at == 95.0
    assert len(told.builds) + told.more_builds == 1000
    assert len(msgspec.json.encode(told.builds)) < 50_000
    assert why_missing(told, 100.0, next(each for each in images if each not in told.builds)) == (
        "waiting for the builds of other images"
    )


def test_what_is_sent_is_known_of_each_image_that_jobs_name(redis: Redis) -> None:
    engine = FakeEngine()
    engine.refuses, engine.refused_image = "it is not allowed", "refused"
    life = NodePhase(redis, engine)
    told = life.step(100.0, images=("own", "refused"))
    assert told.plan == " --node cpus-000000000000 --compute cpus"
    assert told.plans == {"own": "own --node cpus-000000000000 --compute cpus", "refused": "it is not allowed"}
    engine.refuses = ""
    assert life.step(101.0, images=("own", "refused")).plans["refused"].startswith("refused --node ")


def test_nodes_that_die_as_soon_as_they_have_come_are_not_replaced_as_fast(redis: Redis) -> None:
    engine = FakeEngine()
    life = NodePhase(redis, engine)
    for second in range(100, 160):
        told = life.step(float(second), wanted=1)
        for each in [each for each, standing in engine.objects.items() if standing is NodeStanding.RUNNING]:
            engine.objects[each] = NodeStanding.ENDED
            NodeRegistry(redis).remove(each)
        come(redis, engine, in_hand=0)
    assert len(engine.asked) == 2
    assert told.failures == 2
    assert told.why.startswith("it ended ")


def test_a_node_whose_launch_redis_has_forgotten_is_still_of_its_image(redis: Redis) -> None:
    engine = FakeEngine()
    life = NodePhase(redis, engine)
    life.step(100.0, images=("own",))
    redis.delete("parallelrun:launches")
    life.step(101.0, images=("own",))
    come(redis, engine, in_hand=1)
    redis.delete("parallelrun:launches")
    life.step(102.0, images=("own",))
    life.step(103.0, images=("own",))
    assert list(engine.images.values()) == ["own", "own"]
    assert {launch.image for launch in life.provisioning.launches().values()} == {"own"}


def test_one_that_was_held_up_while_another_one_acted_ends_nothing(redis: Redis) -> None:
    engine = FakeEngine()
    first, second = NodePhase(redis, engine), NodePhase(redis, engine)
    first.step(100.0)
    assert len(engine.objects) == 2
    before = first.sight(101.0)
    redis.delete("parallelrun:provisioner")  # it was asking its engine for so long that its lease has run out
    assert second.provisioning.lead()
    first.act_on(before, wanted=0)
    assert len(engine.objects) == 2
    second.step(102.0, wanted=0)
    assert engine.objects == {}


def test_an_engine_is_not_asked_at_each_round_while_a_node_waits_for_hours(redis: Redis) -> None:
    engine = FakeEngine()
    life = NodePhase(redis, engine)
    for round_ in range(1200):
        life.step(100.0 + round_ / 2)
    assert engine.listings < 120
    come(redis, engine, in_hand=1)
    before = engine.listings
    life.step(701.0)
    life.step(701.5)
    assert engine.listings > before, "when a node has come, there may be more to see"


def test_nodes_of_another_engine_are_given_back_and_are_not_those_of_the_new_one(redis: Redis) -> None:
    before, engine = FakeEngine(), FakeEngine()
    first = NodePhase(redis, before)
    first.step(100.0)
    come(redis, before, in_hand=0)
    ending = NodePhase(redis, before, is_over=True, beside=first)
    life = NodePhase(redis, engine, kind="slurm", beside=first)
    for second in range(101, 110):
        ending.step(float(second), wanted=0)
        assert life.step(float(second)).launching == 2
    assert len(engine.asked) == 2
    assert life.nodes.asked_to_leave() == set(before.objects), "and none of the new ones"


def test_how_many_workers_a_node_has_is_known_when_there_is_none(redis: Redis) -> None:
    engine = FakeEngine()
    life = NodePhase(redis, engine)
    life.step(100.0)
    for each in engine.objects:
        info = NodeInfo(
            node=each, session="s", host="h", pid=1, slots=16, busy=0, state=NodeState.READY, version="1", started=1.0,
            compute="cpus",
        )  # fmt: skip
        NodeRegistry(redis).beat(info, lease_ms=60_000)
    told = life.step(101.0)
    for each in list(engine.objects):
        NodeRegistry(redis).remove(each)
    engine.objects.clear()
    later = NodePhase(redis, engine, told, beside=life)
    assert later.step(200.0, wanted=0).slots == 16


def test_all_nodes_are_given_back_whatever_they_do(redis: Redis) -> None:
    engine = FakeEngine()
    life = NodePhase(redis, engine)
    life.step(100.0, wanted=1)
    come(redis, engine, in_hand=1)
    life.step(101.0)
    (busy, early) = engine.objects
    assert not life.pool.release(life.sight(102.0), by_force=False)
    assert life.nodes.asked_to_leave() == set(engine.objects) == {busy}, "what has not come yet is taken back at once"
    assert early not in engine.objects
    assert not life.pool.release(life.sight(103.0), by_force=True)
    assert engine.objects == {}
    NodeRegistry(redis).remove(busy)
    assert life.pool.release(life.sight(104.0), by_force=True)


def test_a_lease_is_kept_while_an_engine_is_slow_and_not_taken_back(redis: Redis) -> None:
    slow, other = Provisioning(redis, lease_ms=200), Provisioning(redis, lease_ms=200)
    keeper = LeaseKeeper(slow, 0.2)
    try:
        assert slow.lead()
        with keeper.keeping():
            time.sleep(0.5)  # an engine that is slow
            assert not other.lead()
        until = time.monotonic() + 10
        while not other.lead():
            assert time.monotonic() < until
        with keeper.keeping():
            time.sleep(0.15)  # the keeper runs once
            assert other.lead()
    finally:
        keeper.stop()
