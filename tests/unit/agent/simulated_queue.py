"""The queue of a job, simulated, as a node sees it: what it gives out, and what it accepts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from parallelrun_agent.policy.commands import NextTurn
from parallelrun_core.wire.leasing import Delivery, Turn
from parallelrun_core.wire.states import JobState
from tests.unit.agent.factories import LEASE_S, MAX_TRY


class SimulatedQueue:
    """It checks what its one node says."""

    def __init__(self, mini_batches: int) -> None:
        self.state = JobState.PROCESSING
        self.sessions = 1
        self.has_session = False
        self.lease_until = 0.0
        self.waiting = list(range(mini_batches))
        self.leases: dict[int, str] = {}
        self.tries: Counter[int] = Counter()
        self.suspects: set[int] = set()
        self.decided: dict[int, str] = {}
        # Each delivery: the tries begun under it, and what was reported of it
        self.deliveries: dict[str, Delivery] = {}
        self.begun: Counter[str] = Counter()
        self.reported: dict[str, str] = {}
        self.lost: set[str] = set()

    def lose_session(self) -> None:
        """The node has given up its session, and begins another."""
        self.sessions += 1
        self.has_session = False
        self.lost |= {token for token in self.deliveries if token not in self.reported}

    def answer(self, turn: NextTurn, now: float) -> Turn:
        """What a node that calls now is told."""
        if turn.mode != "join" and not self.has_session:
            return Turn(self.state, lost=True)
        self.has_session = True
        self.lease_until = now + LEASE_S
        refused = 0
        for mini_batch, token, _ in turn.reports.decided:
            refused += not self.take(mini_batch, token, "decided")
        for mini_batch, token, _, charged, _, died in turn.reports.retries:
            assert charged == 1
            self.suspects |= {mini_batch} if died else set()
            refused += not self.take(mini_batch, token, "retry")
        for mini_batch, token in turn.reports.returns:
            refused += not self.take(mini_batch, token, "returned")
        if turn.mode == "leave":
            assert turn.want == 0
            left = self.expire(lambda token: token.startswith(f"{self.sessions}/"))
            assert not left or self.state is not JobState.PROCESSING, "it leaves without a word about these"
            self.has_session = False
            return Turn(self.state, ready=len(self.waiting), refused=refused)
        leased = []
        if self.state is JobState.PROCESSING:
            chosen, self.waiting = self.waiting[: turn.want], self.waiting[turn.want :]
            for mini_batch in chosen:
                token = f"{self.sessions}/{len(self.deliveries)}"
                delivery = Delivery(mini_batch, token, self.tries[mini_batch], mini_batch in self.suspects, b"")
                self.leases[mini_batch] = token
                self.deliveries[token] = delivery
                leased.append(delivery)
        return Turn(self.state, ready=len(self.waiting), refused=refused, deliveries=tuple(leased))

    def take(self, mini_batch: int, token: str, kind: str) -> bool:
        """Whether the queue accepts this report."""
        assert token not in self.lost, "a lost session speaks"
        assert self.deliveries[token].mini_batch == mini_batch
        assert self.reported.get(token, kind) == kind, "one delivery, two reports"
        self.reported[token] = kind
        begun = self.begun[token]
        assert begun == 1 if kind == "retry" else begun <= 1
        if kind == "retry":
            assert self.deliveries[token].tries + 1 < MAX_TRY
        if self.state is not JobState.PROCESSING or self.leases.get(mini_batch) != token:
            return False
        del self.leases[mini_batch]
        if kind == "decided":
            assert mini_batch not in self.decided
            self.decided[mini_batch] = token
        else:
            self.tries[mini_batch] += kind == "retry"
            self.waiting.insert(0, mini_batch)
        return True

    def give_up_sessions(self, now: float) -> None:
        """The leader has waited for long enough."""
        if now >= self.lease_until:
            self.has_session = False
        self.expire(lambda token: not self.has_session or not token.startswith(f"{self.sessions}/"))

    def expire(self, which: Callable[[str], bool]) -> list[int]:
        """Take back what is held under such tokens."""
        gone = [mini_batch for mini_batch, token in self.leases.items() if which(token)]
        for mini_batch in gone:
            del self.leases[mini_batch]
        self.waiting = [*gone, *self.waiting]
        return gone
