"""Speculation: which stragglers to give out a second time near the end of a job. Pure, no I/O.

Safe because a commit is fenced: whichever delivery commits first is the decision, the other one is refused.
"""

from __future__ import annotations

import random
from bisect import insort
from collections import Counter

_DECIDED_SHARE = 0.75
_LEAST_S = 10.0
_TIMES_USUAL = 2.0
_SAMPLES = 500
_MOST_TIMES = 3
"""A node gives a second delivery back that only the worker of the first one could run: it is given out again then."""


class Speculation:
    """Learns how long run() takes, and watches how long deliveries have been out.

    Args:
        least_s: a delivery that has been out for less is never a straggler.
    """

    def __init__(self, *, least_s: float = _LEAST_S) -> None:
        self._least_s = least_s
        self._samples: list[float] = []
        self._seen: dict[str, float] = {}
        self._times: Counter[int] = Counter()
        """How often each mini-batch was given out again."""
        self._first: dict[int, str] = {}
        """The token of the delivery that was out when this was done first."""
        self._random = random.Random(0)  # noqa: S311 - which samples to keep is no secret

    def observe(self, run_s: float) -> None:
        """Take note of one finished run()."""
        insort(self._samples, run_s)
        if len(self._samples) > _SAMPLES:
            del self._samples[self._random.randrange(len(self._samples))]

    def start_over(self) -> None:
        """Redis may have forgotten which mini-batches have a second delivery."""
        self._times.clear()
        self._first.clear()

    def stragglers(self, leases: dict[int, str], now: float, *, decided: int, total: int) -> list[tuple[int, str]]:
        """The deliveries that should get a second one now: `(mini-batch, token)`. Each mini-batch has at most one at a
        time, and gets another one only if nobody runs the earlier one any more."""
        self._seen = {token: self._seen.get(token, now) for token in leases.values()}
        if not self._samples or decided < _DECIDED_SHARE * total:
            return []
        usual = self._samples[3 * len(self._samples) // 4]
        patience = max(self._least_s, _TIMES_USUAL * usual)
        stragglers = [
            (mini_batch, token)
            for mini_batch, token in leases.items()
            if now - self._seen[token] > patience
            and self._times[mini_batch] < _MOST_TIMES
            and self._first.get(mini_batch, token) == token  # that of a second delivery is none
        ]
        self._times.update(mini_batch for mini_batch, _ in stragglers)
        self._first.update(stragglers)
        self._seen.update((token, now) for _, token in stragglers)
        return stragglers
