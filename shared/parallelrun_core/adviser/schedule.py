"""The schedule of a job: its workers and when each began, how long each mini-batch kept one busy, and what it costs to
hand one over. `TrySchedule.seconds` then says how long it would have taken otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from parallelrun_core.adviser.evidence import RETRY, Evidence, Floats, Ints, Tries, groups_of
from parallelrun_core.adviser.replay import Runs, makespan

_SHORT_GAP_S: Final = 0.05
_GAP_IN_TRIES: Final = 3.0
"""A worker that waits longer than this between two tries, and longer than so many of them take, has nothing to do."""


@dataclass(frozen=True)
class WorkerLane:
    """A place for one worker at a time."""

    node: int
    ready_s: float
    """Time when its worker was ready for the first mini-batch."""


class TrySchedule:
    """The schedule of a job's tries on its workers.

    Args:
        evidence: with at least one try.
    """

    def __init__(self, evidence: Evidence) -> None:
        self.evidence = evidence
        tries = evidence.tries
        self.ends_s, self._gaps_s = _lanes_of_processes(tries)
        """`ends_s`: when each try ended."""
        self.work: Floats
        """How long its last try kept a worker busy, without what any mini-batch costs."""
        self.lost: Floats
        """What went into its other tries."""
        self.items: Ints
        self.node: Ints
        self._sum_up(tries)
        self.lanes, self.replacing_s = _lanes(evidence, self.ends_s)
        """`replacing_s`: for how long places were empty, all added up, until a worker that had ended was replaced."""
        after_s = evidence.seconds - float(self.ends_s.max())
        self.after_s = max(0.0, after_s if evidence.after_s is None else evidence.after_s)
        """From the end of the last try to the job's end."""

    def _sum_up(self, tries: Tries) -> None:
        """Per mini-batch, in the order in which they were begun; failed tries that were followed by others apart."""
        ids, first, place = np.unique(tries.mini_batch, return_index=True, return_inverse=True)
        is_retry = tries.status == RETRY
        busy = tries.elapsed_s - self._inside(tries)
        last = np.zeros(len(ids), dtype=np.int64)
        last[place] = np.arange(len(tries))  # the last one of each that is assigned stays
        keeps = np.zeros(len(tries), dtype=bool)
        keeps[last] = True
        in_vain = np.where(is_retry | ~keeps, busy + self.fixed_s, 0.0)
        lost = np.bincount(place, in_vain, len(ids)).astype(np.float64) * self.evidence.sample.each_retry
        order = np.argsort(first, kind="stable")
        self.ids = ids[order]
        self.last = last[order]
        """The index of each one's last try."""
        self.work, self.lost = busy[self.last], lost[order]
        self.items, self.node = tries.items[self.last], tries.node[self.last]

    @staticmethod
    def _inside(tries: Tries) -> Floats:
        """Return what of a try is neither loading nor `run()`."""
        return np.maximum(0.0, tries.elapsed_s - tries.run_s - tries.load_s)

    @cached_property
    def fixed_s(self) -> float:
        """Return what one more mini-batch costs a worker, beside its items: handing over, answering, storing."""
        tries = self.evidence.tries
        cap = max(_SHORT_GAP_S, _GAP_IN_TRIES * float(np.median(tries.elapsed_s)))
        short = np.where(self._gaps_s <= cap, self._gaps_s, 0.0)
        return float((short + self._inside(tries)).mean())

    @property
    def durations(self) -> Floats:
        """Return how long each mini-batch kept workers busy, with all that was done for it in vain."""
        return self.work + self.lost + self.fixed_s

    @property
    def measured_s(self) -> float:
        return self.evidence.seconds

    @property
    def ready(self) -> list[float]:
        return [lane.ready_s for lane in self.lanes]

    @cached_property
    def base_s(self) -> float:
        """The replay of what happened. What it differs by from the measured time stays in all predictions."""
        return makespan(self.durations, self.ready, each=self._each) + self.after_s

    @property
    def _each(self) -> float:
        return self.evidence.sample.each

    @property
    def count(self) -> int:
        """Return how many mini-batches there are; `work` may have fewer, if only some are looked at."""
        return round(len(self.work) * self._each)

    @property
    def busy_s(self) -> float:
        """Return what all of them took together."""
        return float(self.durations.sum()) * self._each

    @property
    def unexplained_s(self) -> float:
        return self.measured_s - self.base_s

    def seconds(self, durations: Floats | Runs | None = None, ready: Sequence[float] | None = None) -> float:
        """Return how long the job would have taken with other mini-batches, or other workers."""
        durations = self.durations if durations is None else durations
        replayed = makespan(durations, self.ready if ready is None else ready, each=self._each)
        return max(0.0, replayed + self.after_s + self.unexplained_s)

    @property
    def seconds_of_replacing(self) -> float:
        """Return how much of the job's time went into replacing workers."""
        return min(self.replacing_s / len(self.lanes), max(0.0, self.unexplained_s))

    @property
    def nodes(self) -> int:
        return len({lane.node for lane in self.lanes})

    @cached_property
    def processes_per_node(self) -> int:
        """The median number of workers on a node."""
        return int(np.median(np.unique([lane.node for lane in self.lanes], return_counts=True)[1]))

    def lanes_of(self, *, nodes: int | None = None, processes: int | None = None) -> list[float]:
        """Return when workers would be ready on other numbers of nodes, or of processes on each of them."""
        by_node: dict[int, list[float]] = {}
        for lane in self.lanes:
            by_node.setdefault(lane.node, []).append(lane.ready_s)
        order = sorted(by_node.values(), key=min)
        typical = sorted(float(np.median(each)) for each in order)[(len(order) - 1) // 2]
        usual = [typical] * (processes or self.processes_per_node)
        node_lanes = order[:nodes] + [usual] * ((nodes or 0) - len(order))
        if processes is None:
            return [at for lanes in node_lanes for at in lanes]
        return [at for lanes in node_lanes for at in (lanes + [float(np.median(lanes))] * processes)[:processes]]

    @property
    def first_try_s(self) -> float:
        return float(self.evidence.tries.started_s.min())


def numbers_in_process(process: Ints) -> Ints:
    """Return which try of its process each one is, from 0."""
    order = np.argsort(process, kind="stable")
    starts = np.flatnonzero(np.diff(process[order], prepend=-1))
    lengths = np.diff(np.append(starts, len(order)))
    numbers = np.empty(len(order), dtype=np.int64)
    numbers[order] = np.arange(len(order)) - np.repeat(starts, lengths)
    return numbers


def _lanes_of_processes(tries: Tries) -> tuple[Floats, Floats]:
    """Return when each try ended, and how long its process had waited for it.

    A mini-batch may be handed over while the one before it still runs: it begins when that ends.
    """
    ends, gaps = np.empty(len(tries)), np.zeros(len(tries))
    for _, mine in groups_of(tries.process):
        started, elapsed = tries.started_s[mine], tries.elapsed_s[mine]
        before = np.cumsum(elapsed) - elapsed
        ends[mine] = np.maximum.accumulate(started - before) + before + elapsed
        gaps[mine[1:]] = np.maximum(0.0, started[1:] - ends[mine[:-1]])
    return ends, gaps


def _lanes(evidence: Evidence, ends_s: Floats) -> tuple[list[WorkerLane], float]:
    """Return as many lanes for each node as it had workers at the same time; a worker that replaces
    one has its place.
    """
    tries = evidence.tries
    inits = {f"{init.node}/{init.process}": init for init in evidence.inits if init.is_done}
    spans: dict[int, list[tuple[float, float]]] = {}
    busy = set[str]()
    for process, mine in groups_of(tries.process):
        busy.add(evidence.processes[process])
        init = inits.get(evidence.processes[process])
        first = float(tries.started_s[mine].min())
        ready = min(first, init.started_s + init.seconds) if init is not None else first
        spans.setdefault(int(tries.node[mine][0]), []).append((ready, float(ends_s[mine].max())))
    numbers = {name: number for number, name in enumerate(evidence.nodes)}
    for name, init in inits.items():  # those that had nothing to do
        if name not in busy and init.node in numbers:
            ready = init.started_s + init.seconds
            spans.setdefault(numbers[init.node], []).append((ready, max(ready, evidence.seconds)))
    lanes, empty_s = list[WorkerLane](), 0.0
    for node, each in sorted(spans.items()):
        places, replacing_s = _places(each)
        if len(tries) <= len(places):  # for want of mini-batches, not all were begun that may be
            places += [float(np.median(places))] * (_most_places(evidence, node) - len(places))
        lanes += [WorkerLane(node, ready) for ready in places]
        # When one ended that was seen in another stretch than its successor, nobody knows.
        empty_s += replacing_s if evidence.sample.is_all else 0.0
    return lanes, empty_s


def _most_places(evidence: Evidence, node: int) -> int:
    """Return how many workers a node may have: what the job asks for, or one for each CPU."""
    use = evidence.uses.get(evidence.nodes[node])
    return evidence.settings.processes or int((use.cpus if use else None) or 0)


def _places(spans: list[tuple[float, float]]) -> tuple[list[float], float]:
    """Return when each place was taken first, if those who came after others had left took theirs; and how long they
    were empty in between.
    """
    places: list[tuple[float, float]] = []
    empty_s = 0.0
    for ready, end in sorted(spans):
        free_places = [index for index, (_, until) in enumerate(places) if until <= ready + _SHORT_GAP_S]
        if free_places:
            index = max(free_places, key=lambda each: places[each][1])
            empty_s += max(0.0, ready - places[index][1])
            places[index] = (places[index][0], end)
        else:
            places.append((ready, end))
    return [ready for ready, _ in places], empty_s
