"""Fair share: how a node's slots are divided among owners, and then among the jobs of each. Pure policy, no I/O.

Each owner with work that could run here gets an equal part, and each of an owner's jobs a part by its weight. What
somebody can't use goes to the others in the same way, so no slot idles that a job could use. Parts are seldom whole
slots: the rest rotates, and who was given less than their part so far comes first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final, TypeVar

WEIGHTS: Final[Mapping[str, float]] = {"low": 1.0, "normal": 3.0, "high": 9.0}
"""The part of a job among those of its owner, by its `priority`."""
URGENT_FAVOUR: Final = 9.0
"""An urgent job has a part of its own, so many times that of an owner: others go on, more slowly."""
MOST_FAVOUR: Final = 2.0
"""An owner who has used little of late gets at most so many times an equal part, one who has used much at least the
inverse: so nobody ever waits for another one to have used as much."""
_ROTATE_S: Final = 10.0
_ROTATE_STARTS: Final = 50.0
"""A slot that rotates stays with a job until it is ahead by so long, and by so many times what a worker costs."""
_MOST_AHEAD_S: Final = 3600.0
_EPSILON: Final = 1e-9

Worker = TypeVar("Worker")


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A job, or all jobs of an owner, with work that could run on this node.

    Args:
        demand: workers that it could use here, including those that it has.
        held: workers that it has here.
        ahead_s: slot-seconds that it was given here beyond its part; negative: that it was given less.
        start_s: what starting a worker costs.
        is_new: it had no worker here yet.
    """

    name: str
    owner: str = ""
    demand: int
    held: int = 0
    weight: float = WEIGHTS["normal"]
    ahead_s: float = 0.0
    start_s: float = 0.0
    is_new: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """An owner, whatever jobs they have now.

    Args:
        favour: the factor on their equal part, from `favours_of`.
        ahead_s, is_new: as for a claim.
    """

    favour: float = 1.0
    ahead_s: float = 0.0
    is_new: bool = False


_UNKNOWN: Final = Account()


def parts(slots: int, claims: Sequence[Claim], accounts: Mapping[str, Account] = {}) -> dict[str, float]:
    """The part of the slots that each job has, which needn't be whole."""
    by_owner = _by_owner(claims)
    of_owners = _filled(float(slots), [_of_owner(owner, each, accounts) for owner, each in by_owner.items()])
    return {name: part for owner, each in by_owner.items() for name, part in _filled(of_owners[owner], each).items()}


def targets(slots: int, claims: Sequence[Claim], accounts: Mapping[str, Account] = {}) -> dict[str, int]:
    """The number of workers that each job is to have. Together, as many as there are slots, or as can be used."""
    by_owner = _by_owner(claims)
    of_owners = _in_whole_slots(slots, [_of_owner(owner, each, accounts) for owner, each in by_owner.items()])
    return {
        name: count
        for owner, each in by_owner.items()
        for name, count in _in_whole_slots(of_owners[owner], each).items()
    }


def within_gpus(
    count: int, claims: Sequence[Claim], gpus: Mapping[str, Fraction], accounts: Mapping[str, Account] = {}
) -> list[Claim]:
    """Claims of no more workers than have GPUs, on a node with GPUs: those are divided as slots are.

    They are divided in lots as large as the largest worker needs, so that each job's part is whole workers; what is
    left over goes to whoever needs less.

    Args:
        gpus: of each job, how many a worker has, or which part of one.
    """
    workers: Counter[str] = Counter()
    needed = {claim.name: max(Fraction(1), gpus[claim.name]) for claim in claims}
    free = count
    while some := [claim for claim in claims if claim.demand > workers[claim.name] and needed[claim.name] <= free]:
        lot = max(needed[claim.name] for claim in some)
        per_lot = {claim.name: int(lot / gpus[claim.name]) for claim in some}
        lots = [
            replace(claim, demand=-(-(claim.demand - workers[claim.name]) // per_lot[claim.name])) for claim in some
        ]
        shares = targets(int(free / lot), lots, accounts)
        workers.update({name: lots_of * per_lot[name] for name, lots_of in shares.items()})
        free -= int(lot) * sum(shares.values())
    return [replace(claim, demand=min(claim.demand, workers[claim.name])) for claim in claims]


def _by_owner(claims: Sequence[Claim]) -> dict[str, list[Claim]]:
    by_owner: dict[str, list[Claim]] = {}
    for claim in claims:
        by_owner.setdefault(claim.owner, []).append(claim)
    return by_owner


def _of_owner(owner: str, claims: Sequence[Claim], accounts: Mapping[str, Account]) -> Claim:
    account = accounts.get(owner, _UNKNOWN)
    return Claim(
        name=owner,
        demand=sum(claim.demand for claim in claims),
        held=sum(claim.held for claim in claims),
        weight=account.favour,
        ahead_s=account.ahead_s,
        start_s=max(claim.start_s for claim in claims),
        is_new=account.is_new,
    )


def _in_whole_slots(total: int, claims: Sequence[Claim]) -> dict[str, int]:
    """Divide whole slots. Those that are left go to who was given less than their part so far, and stay for a while."""
    exact = _filled(float(total), claims)
    whole = {name: int(part + _EPSILON) for name, part in exact.items()}
    rest = min(total, sum(claim.demand for claim in claims)) - sum(whole.values())

    def order(claim: Claim) -> tuple[bool, float]:
        stays_s = max(_ROTATE_S, _ROTATE_STARTS * claim.start_s) if claim.held > whole[claim.name] else 0.0
        return not claim.is_new, claim.ahead_s - stays_s

    with_rest = [claim for claim in claims if exact[claim.name] - whole[claim.name] > _EPSILON]
    for claim in sorted(with_rest, key=order)[: max(0, rest)]:
        whole[claim.name] += 1
    return whole


def favours_of(usage: Mapping[str, float]) -> dict[str, float]:
    """Factors on the equal parts of owners, by what they have used of late.

    Args:
        usage: slot-seconds of each owner that has work, as decayed by now.
    """
    mean = sum(usage.values()) / len(usage) if usage else 0.0
    if mean <= 0:
        return dict.fromkeys(usage, 1.0)
    return {
        owner: min(MOST_FAVOUR, max(1 / MOST_FAVOUR, mean / used)) if used > 0 else MOST_FAVOUR
        for owner, used in usage.items()
    }


def ahead_after(ahead_s: float, held: int, part: float, elapsed_s: float) -> float:
    """Slot-seconds that a job is ahead of its part after some more time."""
    return min(_MOST_AHEAD_S, max(-_MOST_AHEAD_S, ahead_s + elapsed_s * (held - part)))


def local_demand(ready: int, nodes: int, place: int) -> int:
    """The part of the mini-batches that wait for any node for which this one takes slots from others.

    Every node sees the same ones waiting: without this, a thousand nodes would end a worker each for four of them.

    Args:
        nodes: how many work for the job; less than 2: this one alone, as far as is known.
        place: of this node among them, counted round: each of them has another one, so that none of what waits is
            left to nobody.
    """
    if nodes < 2:
        return ready
    return ready // nodes + (place % nodes < ready % nodes)


def _filled(total: float, claims: Sequence[Claim]) -> dict[str, float]:
    """Divide a total by weight among those who can use something of it; nobody gets more than they can use."""
    filled = {claim.name: 0.0 for claim in claims}
    hungry = [claim for claim in claims if claim.demand > 0]
    while hungry and total > _EPSILON:
        each = total / sum(claim.weight for claim in hungry)
        sated = [claim for claim in hungry if each * claim.weight >= claim.demand - _EPSILON]
        if not sated:
            return filled | {claim.name: each * claim.weight for claim in hungry}
        for claim in sated:
            filled[claim.name] = float(claim.demand)
            total -= claim.demand
        hungry = [claim for claim in hungry if claim not in sated]
    return filled


def to_take_back(
    most: int, holders: Sequence[tuple[int, Sequence[Worker]]], eagerness: Callable[[Worker], float | None]
) -> list[Worker]:
    """The workers that are to end after what they run, so that others get their slots.

    Args:
        most: how many slots are missing.
        holders: of each job, how many workers it has beyond its target, and its workers.
        eagerness: of a worker, the greater the sooner it may be done; None: it may not be taken back yet.
    """
    chosen: list[Worker] = []
    counts = [count for count, _ in holders]
    eager = [
        (eager_s, at, worker)
        for at, (_, workers) in enumerate(holders)
        for worker in workers
        if (eager_s := eagerness(worker)) is not None
    ]
    while len(chosen) < most:
        candidates = [each for each in eager if counts[each[1]] > 0]
        if not candidates:
            break
        best = max(candidates, key=lambda each: (counts[each[1]], each[0]))
        eager.remove(best)
        counts[best[1]] -= 1
        chosen.append(best[2])
    return chosen
