"""Speculation: which stragglers to give out a second time near the end of a job. Pure, no I/O.

Safe because a commit is fenced: whichever delivery commits first is the decision, the other one is refused.
"""

from __future__ import annotations

import random
from bisect import insort

_DECIDED_SHARE = 0.75
_LEAST_S = 10.0
_TIMES_USUAL = 2.0
_SAMPLES = 500


class Speculation:
    """Learns how long run() takes, and watches how long deliveries have been out.

    Args:
        least_s: a delivery that has been out for less is never a straggler.
    """

    def __init__(self, *, least_s: float = _LEAST_S) -> None:
        self._least_s = least_s
        self._samples: list[float] = []
        self._seen: dict[str, float] = {}
        self._given_again: set[int] = set()
        self._random = random.Random(0)  # noqa: S311 - which samples to keep is no secret

    def observe(self, run_s: float) -> None:
        """Take note of one finished run()."""
        insort(self._samples, run_s)
        if len(self._samples) > _SAMPLES:
            del self._samples[self._random.randrange(len(self._samples))]

    def start_over(self) -> None:
        """Redis may have forgotten which mini-batches have a second delivery."""
        self._given_again.clear()

    def stragglers(self, leases: dict[int, str], now: float, *, decided: int, total: int) -> list[tuple[int, str]]:
        """The deliveries that should get a second one now: `(mini-batch, token)`. Each mini-batch gets at most one."""
        self._seen = {token: self._seen.get(token, now) for token in leases.values()}
        if not self._samples or decided < _DECIDED_SHARE * total:
            return []
        usual = self._samples[3 * len(self._samples) // 4]
        patience = max(self._least_s, _TIMES_USUAL * usual)
        stragglers = [
            (mini_batch, token)
            for mini_batch, token in leases.items()
            if now - self._seen[token] > patience and mini_batch not in self._given_again
        ]
        self._given_again.update(mini_batch for mini_batch, _ in stragglers)
        return stragglers
