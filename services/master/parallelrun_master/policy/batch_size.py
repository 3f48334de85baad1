"""Batch size: the number of items of a mini-batch, of a job that chooses that itself. Pure arithmetic, no I/O.

The tuning guide of Azure ML asks for 10 s or more of each mini-batch. How long an item takes is known when some have
been tried. So the first mini-batches have one item, and later ones at most four times as many as enough others had
that are done, or eight times while they are small: what was seen of a few quick items must not put a thousand slow
ones into one mini-batch. What a call of `run()` takes by itself shows in the first sizes, and is no time of items:
where that is much, mini-batches get longer, and fewer small ones are made before and after these.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil
from typing import Final, NamedTuple

from parallelrun_core.figures import duration

TARGET_S: Final = 10.0
MOST_ITEMS: Final = 10_000
"""So that messages stay small, and a mini-batch that fails fails no more."""
MOST_TRIES: Final = 2048
"""Older tries are forgotten."""
GROWTH: Final = 4
_SMALL_GROWTH, _SMALL_ITEMS = 8, 64
"""Up to so many items, sizes grow faster: each one that is tried costs some calls, and little if it is too large."""
_SLOWDOWN: Final = 1.2
"""While the last items took so many times as long as those before, mini-batches don't grow, and the next items are
taken to be slower by as much again."""
_MOST_SLOWDOWN: Final = 4
_CALLS: Final = 20
"""Items should take so many times as long as the call of `run()` does beside them: calls are 5 % of the time then."""
_TIMEOUT_SHARE: Final = 1 / 5
"""Items vary, and one mini-batch that is stopped costs more than many small ones."""
_TRIES_PER_WORKER: Final = 4
"""Quick mini-batches come in first. While each worker may still have a slow one, that is no more than a fifth."""
_SHARES: Final = 2
"""Of what is left, a mini-batch has this part of a worker's share at most, so that all workers end together: guided
self-scheduling."""
LEAST_S: Final = 0.25
_LEAST_CALLS: Final = 6
"""But for that, none is made shorter than this, nor than so many times what the call takes beside its items."""
_FEW_TRIES: Final = ((1, LEAST_S), (2, 1.0))
"""The tries of each worker that are enough, by the seconds that the items of the next mini-batch should take at most:
a short one costs little, should it take longer. One is enough for the few that show what a call takes, too."""
_AHEAD_S: Final = 1.0
"""How much work each worker has, or waits for it."""
_LEAST_AHEAD, _MOST_AHEAD = 2, 4
"""Mini-batches of a worker. Two long ones last until another leader has taken over; while larger ones are to follow,
more would only be more of the small ones."""
_LONG_S, _LONG_CALL_S = 2.0, 0.1
"""While larger ones are to follow, none is ahead if its items or its call take so long: to wait for the leader takes
less."""


class MeasuredTry(NamedTuple):
    """A try that tells how long items take: it is done, or was stopped because it took too long."""

    items: int
    seconds: float
    is_done: bool = True


class Choice(NamedTuple):
    """The size that a mini-batch is to have now."""

    items: int
    why: str
    item_s: float | None = None
    """Seconds that an item takes; None: nobody knows."""
    is_growing: bool = False
    """Larger sizes have to be tried first: it would be one of them."""
    call_s: float = 0.0
    """Seconds that a call of `run()` takes beside its items."""


def target_s(run_invocation_timeout_s: float, call_s: float | None = 0.0) -> float:
    """Return how long the items of a mini-batch should take, beside a call that takes so long; None: nobody knows."""
    most_s = _TIMEOUT_SHARE * max(0.0, run_invocation_timeout_s - (call_s or 0.0))
    return most_s if call_s is None else min(max(TARGET_S, _CALLS * call_s), most_s)


def short_s(call_s: float) -> float:
    """Return the seconds that items take which are hardly worth a call that takes so long."""
    return max(LEAST_S, _LEAST_CALLS * call_s)


def seconds_of_call(quickest_s: Mapping[int, float]) -> float | None:
    """Return how long a call of `run()` takes at least, however few items it has; None: nobody knows.

    Args:
        quickest_s: the shortest try that is done, by the number of its items.
    """
    few = max(quickest_s, default=0) // GROWTH
    if not few:
        return None
    # Of large ones, an item takes hardly more than its own time.
    item_s = min(seconds / items for items, seconds in quickest_s.items())
    return max(0.0, min((each_s - items * item_s for items, each_s in quickest_s.items() if items <= few), default=0.0))


def tries_needed(workers: int, per_worker: int = _TRIES_PER_WORKER) -> int:
    """Return how many tries tell about items: of so few that they may be the quick ones, nobody should believe much."""
    return min(MOST_TRIES // 2, per_worker * max(1, workers))


def largest_after(items: int) -> int:
    """Return how many items a mini-batch may have when enough others had so many."""
    return max(GROWTH * items, min(_SMALL_GROWTH * items, _SMALL_ITEMS))


def choose(
    tries: Sequence[MeasuredTry], workers: int, wanted_s: float, most: int = MOST_ITEMS, call_s: float = 0.0
) -> Choice:
    """Return how many items a mini-batch should have.

    Args:
        tries: the last ones, in the order in which they ended.
        wanted_s: how long the items of a mini-batch should take.
        most: no mini-batch may have more, because larger ones didn't get through.
        call_s: what each try has taken beside its items.
    """
    recent = tries[-2 * tries_needed(workers) :]
    sizes = sorted((each.items for each in recent if each.is_done), reverse=True)
    if not sizes:
        return Choice(1, "no mini-batch is done yet")
    usual_s = _item_s(recent, call_s)
    # What has become slow is believed at once, and what has become quick when it has been so for a while.
    item_s = max(usual_s, _item_s(recent[-max(2, workers) :], call_s))
    if item_s < _SLOWDOWN * usual_s:
        tried = _largest_believed(sizes, item_s, call_s, workers)
    else:
        tried = sizes[0]
        item_s *= min(_MOST_SLOWDOWN, item_s / usual_s)
    bounds = (
        _Bound(MOST_ITEMS, ", and no mini-batch has more"),
        _Bound(max(1, _rounded(int(wanted_s / item_s)))),
        _Bound(most, ", but larger ones have failed"),
        _Bound(tried, ", and no larger ones have been tried", is_growing=True),
    )
    bound = min(bounds, key=lambda each: each.items)  # the first one of equal ones
    call = f", a call {duration(call_s)} more" if call_s > item_s else ""
    return Choice(bound.items, f"an item takes {duration(item_s)}{call}{bound.why}", item_s, bound.is_growing, call_s)


def items_near_end(choice: Choice, items_left: int, workers: int) -> int:
    """Return how many items the next mini-batch should have when these are all that are left, so that no worker is idle
    while others have much to do. The last ones are equal."""
    workers = max(1, workers)
    share = ceil(items_left / (_SHARES * workers))
    least = ceil(short_s(choice.call_s) / choice.item_s) if choice.item_s else 1
    most = min(choice.items, max(share, least))
    mini_batches = max(1, ceil(items_left / most))
    return ceil(items_left / mini_batches) if mini_batches <= workers else most


def items_to_know(choice: Choice, workers: int) -> int:
    """Return how many items must be left so that `items_near_end` doesn't make the next mini-batch smaller."""
    return choice.items * _SHARES * max(1, workers)


def mini_batches_ahead(choice: Choice, workers: int) -> int:
    """Return how many mini-batches should be undecided, so that no worker waits for the leader; the
    rest is cut later.
    """
    if choice.item_s is None:
        return max(workers, tries_needed(workers, _LEAST_AHEAD))
    items_s = choice.items * choice.item_s
    if choice.is_growing and (items_s >= _LONG_S or choice.call_s >= _LONG_CALL_S):
        return max(1, workers)
    most = _LEAST_AHEAD if choice.is_growing else _MOST_AHEAD
    return max(1, workers) * min(most, max(_LEAST_AHEAD, ceil(_AHEAD_S / items_s)))


class _Bound(NamedTuple):
    """No mini-batch has more items, for this reason; it is empty where that is what the time of an item allows."""

    items: int
    why: str = ""
    is_growing: bool = False


def _largest_believed(sizes: Sequence[int], item_s: float, call_s: float, workers: int) -> int:
    """Return the largest size that has been done, or is not much larger than what enough others had.

    Args:
        sizes: those that are done, largest first.
    """

    def after(per_worker: int) -> int:
        count = tries_needed(workers, per_worker)
        return largest_after(sizes[count - 1]) if len(sizes) >= count else 0

    if_short = (
        min(after(per_worker), max(GROWTH, int(max(most_s, short_s(call_s)) / item_s)))
        for per_worker, most_s in _FEW_TRIES
    )
    return max(sizes[0], after(_TRIES_PER_WORKER), *if_short)


def _item_s(tries: Sequence[MeasuredTry], call_s: float) -> float:
    seconds = sum(max(0.0, each.seconds - call_s) for each in tries)
    return max(1e-9, seconds / max(1, sum(each.items for each in tries)))


def _rounded(items: int) -> int:
    """Down to two digits, so that it doesn't change with each try."""
    unit: int = 10 ** max(0, len(str(items)) - 2)
    return items // unit * unit
