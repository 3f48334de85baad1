"""Fair shares of a node's slots: what is divided, and what becomes of it over time."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from types import SimpleNamespace
from typing import Any, cast

import pytest

from parallelrun_agent.jobs.slot_sharing import SlotSharing
from parallelrun_agent.policy.fair_share import (
    MOST_FAVOUR,
    WEIGHTS,
    Account,
    Claim,
    ahead_after,
    favours_of,
    local_demand,
    parts,
    targets,
    to_take_back,
    within_gpus,
)
from parallelrun_agent.policy.in_flight import Assignment
from parallelrun_agent.policy.node_work import WORKS_AT_LEAST
from parallelrun_agent.policy.worker import Worker
from parallelrun_core.wire.leasing import Delivery

STEP_S = 0.25
"""How often a node without a free slot looks for work."""


def claim(name: str, demand: int, *, owner: str = "", **more: Any) -> Claim:
    return Claim(name=name, owner=owner, demand=demand, **more)


class TestParts:
    def test_owners_have_equal_parts_whatever_number_of_jobs(self) -> None:
        claims = [claim(f"a{number}", 100, owner="anna") for number in range(9)] + [claim("b", 100, owner="bert")]
        of_jobs = parts(12, claims)
        assert of_jobs["b"] == pytest.approx(6)
        assert of_jobs["a0"] == pytest.approx(6 / 9)

    def test_jobs_of_an_owner_have_parts_by_their_weight(self) -> None:
        claims = [claim(name, 100, weight=weight) for name, weight in WEIGHTS.items()]
        assert parts(13, claims) == {"low": pytest.approx(1), "normal": pytest.approx(3), "high": pytest.approx(9)}

    def test_what_one_cannot_use_goes_to_the_others(self) -> None:
        assert targets(12, [claim("long", 1000), claim("small", 4), claim("tiny", 1)]) == {
            "long": 7, "small": 4, "tiny": 1,
        }  # fmt: skip
        assert targets(12, [claim("long", 3), claim("small", 4)]) == {"long": 3, "small": 4}
        assert targets(12, []) == {}

    def test_a_new_job_gets_the_one_slot_and_who_was_given_less_gets_it_next(self) -> None:
        old = claim("old", 10, held=1, ahead_s=500)
        assert targets(1, [old, claim("new", 4, is_new=True)]) == {"old": 0, "new": 1}
        assert targets(1, [claim("old", 10, held=1, ahead_s=4), claim("other", 4, ahead_s=-4)])["old"] == 1, "stays"
        assert targets(1, [claim("old", 10, held=1, ahead_s=6), claim("other", 4, ahead_s=-6)])["old"] == 0
        with_init = claim("old", 10, held=1, ahead_s=6, start_s=3)
        assert targets(1, [with_init, claim("other", 4, ahead_s=-6)])["old"] == 1, "its start was expensive"

    def test_many_new_jobs_of_one_owner_do_not_pass_another_owner_by(self) -> None:
        claims = [claim(f"a{number}", 5, owner="anna", is_new=True) for number in range(50)]
        claims.append(claim("b", 5, owner="bert", ahead_s=-100))
        accounts = {"anna": Account(ahead_s=100), "bert": Account(ahead_s=-100)}
        assert targets(1, claims, accounts)["b"] == 1

    def test_what_was_used_counts_and_nobody_waits_until_another_has_used_as_much(self) -> None:
        assert favours_of({"anna": 0, "bert": 0}) == {"anna": 1, "bert": 1}
        favours = favours_of({"anna": 1_000_000, "bert": 0})
        assert favours == {"anna": 1 / MOST_FAVOUR, "bert": MOST_FAVOUR}
        accounts = {owner: Account(favour=favour) for owner, favour in favours.items()}
        assert targets(10, [claim("a", 99, owner="anna"), claim("b", 99, owner="bert")], accounts) == {"a": 2, "b": 8}

    @pytest.mark.parametrize("seed", range(200))
    def test_no_slot_is_given_twice_or_left_out(self, seed: int) -> None:
        rng = random.Random(seed)
        claims = [
            claim(
                f"job{number}",
                rng.choice([0, 1, 2, 5, 100]),
                owner=rng.choice(["", "anna", "bert", "carla"]),
                held=rng.randrange(4),
                weight=rng.choice(list(WEIGHTS.values())),
                ahead_s=rng.uniform(-50, 50),
                start_s=rng.choice([0, 0.1, 5]),
                is_new=rng.random() < 0.2,
            )
            for number in range(rng.randrange(1, 12))
        ]
        slots = rng.randrange(1, 20)
        whole, exact = targets(slots, claims), parts(slots, claims)
        assert sum(whole.values()) == min(slots, sum(each.demand for each in claims))
        for each in claims:
            assert whole[each.name] <= each.demand
        for owner in {each.owner for each in claims}:
            names = [each.name for each in claims if each.owner == owner]
            assert abs(sum(whole[name] for name in names) - sum(exact[name] for name in names)) < 1 + 1e-6

    def test_as_many_nodes_take_slots_as_there_are_mini_batches_for(self) -> None:
        assert sum(local_demand(4, 1000, place) for place in range(1000)) == 4
        assert sum(local_demand(2500, 1000, place) for place in range(1000)) == 2500
        assert local_demand(4, 1, 17) == local_demand(4, 0, 17) == 4

    def test_how_far_one_can_be_ahead_has_a_limit(self) -> None:
        assert ahead_after(0.0, 3, 1.5, 2.0) == 3.0
        assert ahead_after(3599.0, 8, 1, 3600.0) == 3600.0

    def test_workers_are_taken_from_who_has_most_and_the_one_that_is_done_first(self) -> None:
        workers = {"a": ["a1", "a2", "a3"], "b": ["b1"], "c": ["c1", "c2"]}
        since = {"a1": 1.0, "a2": 9.0, "a3": None, "b1": 5.0, "c1": 2.0, "c2": 3.0}
        holders = [(2, workers["a"]), (0, workers["b"]), (1, workers["c"])]
        assert to_take_back(2, holders, since.get) == ["a2", "c2"]
        assert to_take_back(9, holders, since.get) == ["a2", "c2", "a1"]


@dataclass
class Batch:
    """A mini-batch that a worker of a simulated job runs."""

    ends: float


@dataclass
class SimulatedJob:
    """A job on a node, as far as the sharing of slots sees it; time passes in `step`."""

    job_id: str
    owner: str
    ready: int
    batch_s: float
    init_s: float
    priority: str = "normal"
    limit: int = 10_000
    slots_beyond: int = 0
    gpus_of_worker: Fraction = Fraction(1)
    waiting: int = 0
    bytes_each: int = 0
    process_s: float = 0.0
    """Seconds that starting a process takes, before the script is imported."""
    workers: list[Worker] = field(default_factory=list)
    ends: dict[Worker, float] = field(default_factory=dict)
    done: int = 0
    taken: list[tuple[float, float]] = field(default_factory=list)
    """Of each worker that was taken back: how long it had worked, and how long its init() took."""
    now: float = 0.0
    has_template: bool = True
    asked: int = 0
    """How often its workers had slots and would have begun a template."""

    @property
    def account(self) -> str:
        return f"\0{self.job_id}" if self.priority == "urgent" else self.owner

    def wanted_workers(self, _: float) -> int:
        free = sum(not worker.in_flight and not worker.is_to_end for worker in self.workers)
        return max(0, min(self.limit - len(self.workers), self.ready - free))

    def awaits_template(self, _: float) -> bool:
        self.asked += 1
        return not self.has_template

    def spawn(self) -> None:
        worker = Worker(f"process{len(self.workers)}", "", self.now)
        self.workers.append(worker)
        self.ends[worker] = self.now + self.process_s + self.init_s

    def take_back(self, worker: Worker) -> None:
        worker.replace()
        self.taken.append((self.now - worker.ready_at, worker.init_s))

    def end_idle_worker(self, _: float) -> bool:
        idle = next((each for each in self.workers if each.stage == "ready" and not each.in_flight), None)
        if idle is None or self.ready:
            return False
        idle.end(self.now + 30)
        return True

    def resident_bytes(self) -> int:
        return self.bytes_each if self.workers else 0

    def step(self, now: float) -> None:
        self.now = now
        for worker in list(self.workers):
            if self.ends.get(worker, now) > now:
                continue
            if not worker.is_through_init:
                worker.pass_init(self.ends[worker], self.init_s)
            elif worker.in_flight:
                worker.in_flight.answered(0, now)
                self.done += 1
            if worker.stage in ("replaced", "ending"):
                self.workers.remove(worker)
            elif self.ready:
                self.ready -= 1
                worker.in_flight.push([Assignment(Delivery(0, "", 0, False, b""))], now)
                self.ends[worker] = now + self.batch_s

    @property
    def is_hungry(self) -> bool:
        return self.wanted_workers(self.now) > 0

    @property
    def has_ended(self) -> bool:
        return not self.ready and not any(worker.in_flight for worker in self.workers)


@dataclass
class Node:
    """A node that shares its slots among simulated jobs."""

    sharing: SlotSharing
    jobs: list[SimulatedJob] = field(default_factory=list)
    now: float = 0.0

    @classmethod
    def of(cls, slots: int, **more: Any) -> Node:
        return cls(SlotSharing(slots, available=lambda: None, **more))

    def step(self) -> None:
        self.now += STEP_S
        for job in self.jobs:
            job.step(self.now)
        self.jobs = [job for job in self.jobs if not job.has_ended]
        self.share(dict.fromkeys((job.job_id for job in self.jobs), 1))

    def share(self, sessions: Mapping[str, int]) -> None:
        self.sharing.share(cast(Any, self.jobs), {job.job_id: job.ready for job in self.jobs}, sessions, self.now)

    def busy(self) -> int:
        return sum(len(job.workers) for job in self.jobs)


class TestOverTime:
    def test_a_small_job_does_not_wait_for_a_long_one(self) -> None:
        node = Node.of(4)
        long = SimulatedJob("long", "anna", ready=10_000, batch_s=2.0, init_s=0.1)
        node.jobs = [long]
        while node.now < 20:
            node.step()
        small = SimulatedJob("small", "bert", ready=4, batch_s=2.0, init_s=0.1)
        node.jobs.append(small)
        small.now = began = node.now
        while not small.done:
            node.step()
            assert node.now < began + 2 * long.batch_s + 4 * STEP_S, "it starts within one mini-batch"
        while not small.has_ended:
            node.step()
            assert len(long.workers) >= 2, "the long one keeps its part"
        assert node.now < began + 10
        while len(long.workers) < 4 or not all(worker.is_through_init for worker in long.workers):
            node.step()
        assert len(long.taken) == 2

    @pytest.mark.parametrize("ready", [1, 2, 7])
    def test_as_many_nodes_begin_with_a_small_job_as_can_and_more_while_none_has_a_slot(self, ready: int) -> None:
        nodes = [Node.of(1) for _ in range(10)]
        for node in nodes:
            node.jobs = [SimulatedJob("long", "anna", ready=10_000, batch_s=100.0, init_s=0.1)]
            while node.now < 10:
                node.step()
            node.jobs.append(SimulatedJob("small", "bert", ready=ready, batch_s=2.0, init_s=0.1))

        def taking(seconds: float) -> list[int]:
            """The nodes, in the order in which they joined, that let a worker end for it."""
            for place, node in enumerate(nodes):
                node.now = 10.0 + seconds
                node.share({"long": 10, "small": 10 if seconds else place})
            return [place for place, node in enumerate(nodes) if node.jobs[0].taken]

        taking(0.0)
        assert taking(1.0) == [*range(ready)], "no mini-batch is left to nobody"
        assert taking(20.0) == [*range(ready)]
        assert taking(40.0) == [*range(min(10, 2 * ready))], "the first ones still wait for a slot"

    def test_a_worker_works_ten_times_as_long_as_its_init_took(self) -> None:
        node = Node.of(2)
        node.jobs = [SimulatedJob("long", "", ready=10_000, batch_s=0.5, init_s=8.0)]
        for number in range(400):
            if number % 40 == 0:
                node.jobs.append(SimulatedJob(f"small{number}", "", ready=2, batch_s=0.5, init_s=0.1))
            node.step()
        taken = [each for job in node.jobs for each in job.taken]
        assert taken
        assert all(worked >= WORKS_AT_LEAST * init for worked, init in taken)

    def test_a_machine_on_which_processes_start_slowly_makes_no_small_job_wait(self) -> None:
        node = Node.of(2)
        node.jobs = [SimulatedJob("long", "", ready=10_000, batch_s=2.0, init_s=0.0, process_s=1.5)]
        while node.now < 6:
            node.step()
        small = SimulatedJob("small", "", ready=4, batch_s=2.0, init_s=0.0, process_s=1.5)
        node.jobs.append(small)
        small.now = began = node.now
        while not any(worker.in_flight for worker in small.workers):
            node.step()
        assert node.now < began + 2.0 + small.process_s + 4 * STEP_S, "within a mini-batch, and its own start"

    def test_an_urgent_job_has_a_part_of_its_own_and_others_go_on(self) -> None:
        node = Node.of(10)
        first = SimulatedJob("first", "anna", ready=10_000, batch_s=1.0, init_s=0.1)
        second = SimulatedJob("second", "anna", ready=10_000, batch_s=1.0, init_s=0.1)
        third = SimulatedJob("third", "bert", ready=10_000, batch_s=1.0, init_s=0.1)
        node.jobs = [first, second, third]
        while node.now < 60:
            node.step()
        second.priority = "urgent"
        while node.now < 200:
            node.step()
        held = {job.job_id: len(job.workers) for job in node.jobs}
        assert held["second"] >= 8, held
        assert min(first.done, third.done) > 20, "nobody starves"

    def test_the_one_slot_goes_round(self) -> None:
        node = Node.of(1)
        jobs = [SimulatedJob(f"job{number}", "", ready=10_000, batch_s=1.0, init_s=0.1) for number in range(3)]
        node.jobs = list(jobs)
        while node.now < 900:
            node.step()
        counts = [job.done for job in jobs]
        assert max(counts) - min(counts) < 40, counts
        assert sum(counts) > 0.9 * 900

    def test_a_second_jobs_worker_waits_for_memory_unless_its_job_is_alone(self) -> None:
        room = SimpleNamespace(bytes=100)
        node = Node(SlotSharing(4, available=lambda: room.bytes))
        large = SimulatedJob("large", "", ready=3, batch_s=50.0, init_s=0.1, limit=3, bytes_each=1000)
        small = SimulatedJob("small", "", ready=50, batch_s=1.0, init_s=0.1)
        node.jobs = [large]
        node.step()
        node.jobs.append(small)
        for _ in range(20):
            node.step()
        assert (len(large.workers), len(small.workers)) == (3, 0)
        room.bytes = 1000
        node.step()
        assert len(small.workers) == 1

    def test_gpus_are_counted_apart(self) -> None:
        node = Node.of(16, gpus=4)
        first = SimulatedJob("first", "anna", ready=10_000, batch_s=1.0, init_s=0.1, limit=4)
        node.jobs = [first]
        for _ in range(20):
            node.step()
        second = SimulatedJob("second", "bert", ready=10_000, batch_s=1.0, init_s=0.1, limit=4)
        node.jobs.append(second)
        for _ in range(40):
            node.step()
        assert (len(first.workers), len(second.workers)) == (2, 2), "of 16 slots, but of 4 GPUs"


@pytest.mark.parametrize("seed", range(60))
def test_whatever_happens_everybody_gets_their_part_and_no_slot_idles(seed: int) -> None:
    check_histories(seed)


def check_histories(seed: int) -> None:
    """Play a random history: jobs of several owners come, with mini-batches and starts of any length.

    A job with work that waits has at least its part of the slots, once each worker has had time to end what it ran and
    to have earned its start; none waits for ever; and no slot is free that a job could use.
    """
    rng = random.Random(seed)
    node = Node.of(rng.randrange(1, 9))
    slots = node.sharing.slots
    longest_s = longest_init_s = 0.0
    hungry_since: dict[str, float] = {}
    without_since: dict[str, float] = {}
    coming = [
        SimulatedJob(
            f"job{number}",
            rng.choice(["", "anna", "bert"]),
            ready=rng.choice([1, 4, 40, 400]),
            batch_s=rng.choice([0.25, 1.0, 2.0, 6.0]),
            init_s=rng.choice([0.05, 0.25, 1.0]),
            priority=rng.choice(list(WEIGHTS)),
            limit=rng.choice([1, 4, 10_000]),
        )
        for number in range(rng.randrange(2, 9))
    ]
    all_jobs = list(coming)
    while (coming or node.jobs) and node.now < 4000:
        if coming and (not node.jobs or rng.random() < 0.02):
            job = coming.pop()
            job.now = node.now
            longest_s, longest_init_s = max(longest_s, job.batch_s), max(longest_init_s, job.init_s)
            node.jobs.append(job)
            hungry_since.clear()  # parts are others from now on
        before = {job.job_id for job in node.jobs}
        node.step()
        if {job.job_id for job in node.jobs} != before:
            hungry_since.clear()
        free = slots - node.busy()
        patience_s = longest_s + (WORKS_AT_LEAST + 2) * longest_init_s + 4 * STEP_S
        for job in node.jobs:
            assert free <= 0 or not job.is_hungry, "no slot idles"
            if not job.is_hungry:
                hungry_since.pop(job.job_id, None)
                without_since.pop(job.job_id, None)
                continue
            hungry_s = node.now - hungry_since.setdefault(job.job_id, node.now)
            if hungry_s > patience_s:
                assert len(job.workers) >= least_part(job, node.jobs, slots), (job.job_id, node.now)
            if job.workers:
                without_since.pop(job.job_id, None)
            rounds = len(node.jobs) * (max(10.0, 50 * longest_init_s) + patience_s) * 9 * MOST_FAVOUR
            assert node.now - without_since.setdefault(job.job_id, node.now) < rounds, "nobody starves"
    assert all(job.has_ended for job in all_jobs)
    assert all(worked >= WORKS_AT_LEAST * init for job in all_jobs for worked, init in job.taken)


def least_part(job: SimulatedJob, jobs: list[SimulatedJob], slots: int) -> int:
    """The whole slots that a job is to have if everybody could use any number."""
    owners = len({each.owner for each in jobs})
    weights = sum(WEIGHTS[each.priority] for each in jobs if each.owner == job.owner)
    return int(slots // owners * WEIGHTS[job.priority] / weights + 1e-9)


@pytest.mark.parametrize("more", [{}, {"gpus": 4}, {"most_workers": {"anna": 2}}])
def test_slots_are_kept_for_workers_that_wait_for_a_template(more: dict[str, Any]) -> None:
    node = Node.of(4, **more)
    first = SimulatedJob("first", "anna", ready=100, batch_s=1.0, init_s=0.1, limit=2)
    node.jobs = [first]
    node.step()
    late = SimulatedJob("late", "bert", ready=100, batch_s=1.0, init_s=0.1, has_template=False)
    eager = SimulatedJob("eager", "bert", ready=100, batch_s=1.0, init_s=0.1, limit=3)
    node.jobs = [first, late, eager]
    while node.now < 3.0:
        node.step()
        assert not late.workers
        assert len(first.workers) == 2, "nobody is ended for it"
        assert len(eager.workers) == 1, "one slot is kept, and no more"
    late.has_template = True
    node.step()
    assert len(late.workers) == 1
    assert not any(job.taken for job in node.jobs)


def test_a_job_alone_gets_all_slots_once_it_has_a_template() -> None:
    node = Node.of(4)
    node.jobs = [job := SimulatedJob("job", "anna", ready=8, batch_s=1.0, init_s=0.1, has_template=False)]
    node.step()
    assert (job.asked, len(job.workers)) == (1, 0)
    job.has_template = True
    node.step()
    assert len(job.workers) == 4


def test_a_job_without_a_slot_begins_no_template() -> None:
    node = Node.of(2)
    long = SimulatedJob("long", "anna", ready=100, batch_s=1000.0, init_s=0.1)
    node.jobs = [long]
    node.step()
    node.jobs.append(other := SimulatedJob("other", "bert", ready=100, batch_s=1.0, init_s=0.1))
    while node.now < 20:
        node.step()
    assert not other.asked
    assert other.wanted_workers(node.now) == 100


@pytest.mark.parametrize("count, demands, expected", [
    (4, {"whole": (8, 1)}, {"whole": 4}),
    (4, {"pairs": (8, 2)}, {"pairs": 2}),
    (4, {"whole": (8, 1), "pairs": (8, 2)}, {"whole": 2, "pairs": 1}),
    (3, {"whole": (8, 1), "pairs": (8, 2)}, None),
    (2, {"pairs": (8, 2), "other": (8, 2)}, None),
    (2, {"halves": (8, Fraction(1, 2)), "whole": (8, 1)}, {"halves": 2, "whole": 1}),
    (1, {"pairs": (8, 2), "whole": (8, 1)}, {"pairs": 0, "whole": 1}),
    (5, {"three": (1, 3), "whole": (1, 1)}, {"three": 1, "whole": 1}),
])  # fmt: skip
def test_gpus_are_divided_so_that_parts_are_whole_workers_and_none_idles(
    count: int, demands: dict[str, tuple[int, Fraction]], expected: dict[str, int] | None
) -> None:
    claims = [Claim(name=name, demand=demand) for name, (demand, _) in demands.items()]
    gpus = {name: Fraction(each) for name, (_, each) in demands.items()}

    workers = {claim.name: claim.demand for claim in within_gpus(count, claims, gpus)}

    assert sum(workers[name] * each for name, each in gpus.items()) <= count
    if expected is not None:
        assert workers == expected
    else:
        assert sum(workers[name] * each for name, each in gpus.items()) == count
