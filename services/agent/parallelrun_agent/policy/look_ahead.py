"""Look-ahead: how many mini-batches to hand to a worker at once, and when to lease more. Pure policy, no I/O.

Short mini-batches cost more in hand-overs than in work, so a worker gets several ahead: as many as it will finish
within a blink. As soon as they are long, it gets one at a time, and every node has its fair share.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from parallelrun_agent.policy.worker import NEVER, Worker

HORIZON_S = 0.1
"""How much work may wait for the mini-batch that runs."""
MAX_DEPTH = 256
TURN_S = 0.0003
"""About what a turn takes, with all that wakes for it. An answer that comes sooner than that is worth waiting for."""

_RISE, _FALL = 0.5, 0.1
_FORGET = 0.02


class LookAhead:
    """Learns from each finished run() how many mini-batches a worker may have in flight, and leases by that."""

    def __init__(self, *, enabled: bool) -> None:
        self.gather_until = NEVER
        """Until when to wait for answers that are due before a turn could bring anything; NEVER: for none."""
        self.shortest_s = 0.0
        """About the shortest run() of late."""
        self._enabled = enabled
        self._run_s: float | None = None

    def observe(self, run_s: float) -> None:
        """Take note of one run(). Long ones are believed quickly, short ones slowly."""
        if self._run_s is None:
            self._run_s = self.shortest_s = run_s
        else:
            weight = _RISE if run_s > self._run_s else _FALL
            self._run_s += weight * (run_s - self._run_s)
            if run_s < self.shortest_s:
                self.shortest_s = run_s
            else:
                self.shortest_s += _FORGET * (run_s - self.shortest_s)

    @property
    def run_s(self) -> float:
        """About how long a run() takes; 0 before the first."""
        return self._run_s or 0.0

    @property
    def depth(self) -> int:
        """Return how many mini-batches a worker may have in flight, including the running one."""
        if not self._enabled or self._run_s is None:
            return 1
        return max(1, min(MAX_DEPTH, int(HORIZON_S / max(self._run_s, 1e-6))))

    @property
    def width(self) -> int:
        """Return how many mini-batches a worker is to run at once, if it has to be told; 0: it runs one."""
        return 0

    @property
    def depth_of_long(self) -> int:
        """Return how many it may have in flight when run() takes long."""
        return 1

    def nap_s(self, counts: Sequence[int]) -> float:
        """Return how long no worker will run dry: half of what the one with the least in flight has to do, if all is
        quick.

        Args:
            counts: how many each worker has in flight.
        """
        if not counts:
            return 0.0
        return (min(counts) - 1) * self.shortest_s / 2

    def wanted(self, workers: Iterable[Worker], waiting: int, now: float) -> int:
        """Return how many more to lease: nothing until some worker has room for a good part of the depth.

        Nor while other answers will come sooner than a turn could bring anything (`gather_until`): one turn is then
        for all of them.

        Args:
            workers: those that can be given something.
            waiting: how many have been leased already, and wait for a worker.
        """
        self.gather_until = NEVER
        depth = self.depth
        most = total_room = 0
        latest = now - TURN_S
        for worker in workers:
            in_flight = worker.in_flight
            room = in_flight.room(depth, now)
            total_room += room
            if room > most:
                most = room
            elif not room and in_flight.head_since > latest:
                latest = in_flight.head_since
        if most - waiting < (depth + 1) // 2:
            return 0
        if latest + TURN_S > now and self._is_brief:
            self.gather_until = latest + TURN_S
            return 0
        return total_room - waiting

    @property
    def _is_brief(self) -> bool:
        """Return whether run() takes less than half of a turn with one in flight: most of the time goes into turns."""
        return self._run_s is not None and self._run_s < TURN_S / 2 and self.depth == 1
